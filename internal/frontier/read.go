package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
)

// URL returns one URL's state. Errors: ErrNoURL.
func (s *Store) URL(ctx context.Context, run, id string) (URLInfo, error) {
	p, err := s.url(ctx, run, id)
	if err != nil {
		return URLInfo{}, err
	}
	return p.info(id), nil
}

// Failures returns dead letters, oldest first: of the list of all that ever failed
// n from offset on, without those that have been run again since.
func (s *Store) Failures(ctx context.Context, run string, offset, n int) ([]URLInfo, error) {
	if n <= 0 || offset < 0 {
		return nil, nil
	}
	dead, err := s.rdb.LRange(ctx, s.keys(run).dead, int64(offset), int64(offset)+int64(n)-1).Result()
	if err != nil {
		return nil, fmt.Errorf("list failures of %s: %w", run, err)
	}
	ids := make([]string, len(dead))
	replays := make([]string, len(dead))
	for i, d := range dead {
		ids[i], replays[i], _ = strings.Cut(d, "\t")
	}
	urls, err := s.urls(ctx, run, ids)
	if err != nil {
		return nil, fmt.Errorf("list failures of %s: %w", run, err)
	}
	var out []URLInfo
	for i, p := range urls {
		if p != nil && p.state == crawl.Failed && strconv.Itoa(p.replay) == replays[i] {
			out = append(out, p.info(ids[i]))
		}
	}
	return out, nil
}

// Waiting returns the waiting URLs in groups of host and reason, the largest first.
// Until is the latest end of a wait since the group was last empty.
func (s *Store) Waiting(ctx context.Context, run string) ([]WaitGroup, error) {
	m, err := s.rdb.HGetAll(ctx, s.keys(run).waits).Result()
	if err != nil {
		return nil, fmt.Errorf("list waits of %s: %w", run, err)
	}
	groups := make([]WaitGroup, 0, len(m))
	for field, v := range m {
		host, why, _ := strings.Cut(field, "\x00")
		count, until, _ := strings.Cut(v, " ")
		groups = append(groups, WaitGroup{
			Host: host, Why: crawl.WaitReason(why),
			URLs: atoi(count), Until: time.UnixMilli(atoi(until)).UTC(),
		})
	}
	slices.SortFunc(groups, func(a, b WaitGroup) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Why, b.Why))
	})
	return groups, nil
}

func (s *Store) url(ctx context.Context, run, id string) (packed, error) {
	v, err := s.rdb.HGet(ctx, s.keys(run).urls, id).Result()
	if errors.Is(err, redis.Nil) {
		return packed{}, ErrNoURL
	}
	if err != nil {
		return packed{}, fmt.Errorf("read URL of %s: %w", run, err)
	}
	return unpack(v)
}

// urls reads URLs; nil stands for one that is not there.
func (s *Store) urls(ctx context.Context, run string, ids []string) ([]*packed, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	vs, err := s.rdb.HMGet(ctx, s.keys(run).urls, ids...).Result()
	if err != nil {
		return nil, err
	}
	out := make([]*packed, len(vs))
	for i, v := range vs {
		str, ok := v.(string)
		if !ok {
			continue
		}
		p, err := unpack(str)
		if err != nil {
			return nil, err
		}
		out[i] = &p
	}
	return out, nil
}

// short shortens a token to what is worth storing with each open URL.
func short(token string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token))
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}
