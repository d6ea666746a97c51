package frontier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"holdfast/internal/crawl"
)

// BatchSize is the number of entries that one script takes: large enough to pay
// for the trip, small enough that Redis answers others within some 50 ms.
const BatchSize = 1000

// extras is what is stored of a request beside its method and URL.
type extras struct {
	Headers map[string]string `json:"h,omitempty"`
	Body    string            `json:"b,omitempty"`
	Key     string            `json:"k,omitempty"`
	Meta    json.RawMessage   `json:"m,omitempty"`
}

// AddBatch loads input batch n of a run, n = 1, 2, …; at most BatchSize entries are
// sensible. A batch that is already counted changes nothing and answers the same
// numbers. Errors: ErrSealed after Seal, ErrRunEnded when the run is not open.
func (s *Store) AddBatch(ctx context.Context, run string, n int, entries []Entry) (Added, error) {
	if n < 0 {
		return Added{}, fmt.Errorf("add batch %d: number below 0", n)
	}
	added, err := s.add(ctx, run, strconv.Itoa(n), entries)
	if err != nil {
		return Added{}, fmt.Errorf("add batch %d to %s: %w", n, run, err)
	}
	return added, nil
}

// Add accepts further entries into an open run, BatchSize at a time; ErrRunEnded
// when it is not open. After an error the entries may be added again: those that
// are in count as seen.
func (s *Store) Add(ctx context.Context, run string, entries []Entry) (Added, error) {
	var sum Added
	for len(entries) > 0 {
		n := min(len(entries), BatchSize)
		added, err := s.add(ctx, run, "", entries[:n])
		if err != nil {
			return sum, fmt.Errorf("add to %s: %w", run, err)
		}
		sum.Added += added.Added
		sum.Seen += added.Seen
		entries = entries[n:]
	}
	return sum, nil
}

func (s *Store) add(ctx context.Context, run, batch string, entries []Entry) (Added, error) {
	args := make([]any, 0, 2+4*len(entries))
	args = append(args, batch, token())
	for i, e := range entries {
		if err := e.check(); err != nil {
			return Added{}, fmt.Errorf("entry %d: %w", i+1, err)
		}
		x := ""
		if r := e.Request; r.HasExtras() {
			b, err := json.Marshal(extras{Headers: r.Headers, Body: r.Body, Key: r.Key, Meta: r.Meta})
			if err != nil {
				return Added{}, fmt.Errorf("encode extras of entry %d: %w", i+1, err)
			}
			x = string(b)
		}
		args = append(args, e.ID, e.Host, e.static(), x)
	}
	l, err := s.list(ctx, s.scripts.add, run, args...)
	if err != nil {
		return Added{}, err
	}
	if len(l) != 2 {
		return Added{}, errors.New("short answer of a script")
	}
	return Added{Added: int(atoi(l[0])), Seen: int(atoi(l[1]))}, nil
}

// check refuses an entry that the frontier could not hold.
func (e Entry) check() error {
	if e.ID == "" || e.Host == "" || e.Request.URL == "" {
		return errors.New("id, host and URL are required")
	}
	return errors.Join(plain("id", e.ID), plain("host", e.Host), plain("URL", e.Request.URL),
		plain("method", e.Request.Method), plain("parent", e.Parent))
}

// Extras returns the request of a URL with all that it was accepted with.
// Errors: ErrNoURL.
func (s *Store) Extras(ctx context.Context, run, id string) (crawl.Request, error) {
	k := s.keys(run)
	p, err := s.url(ctx, run, id)
	if err != nil {
		return crawl.Request{}, err
	}
	r := crawl.Request{Method: p.method, URL: p.url}
	if !p.extras {
		return r, nil
	}
	b, err := s.rdb.HGet(ctx, k.extras, id).Bytes()
	if err != nil {
		return crawl.Request{}, fmt.Errorf("read extras: %w", err)
	}
	var x extras
	if err := json.Unmarshal(b, &x); err != nil {
		return crawl.Request{}, fmt.Errorf("decode extras: %w", err)
	}
	r.Headers, r.Body, r.Key, r.Meta = x.Headers, x.Body, x.Key, x.Meta
	return r, nil
}

// token names one call, so that a script sent again after a lost reply knows it.
func token() string { return strconv.FormatUint(rand.Uint64(), 36) }
