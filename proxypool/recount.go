package proxypool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// recountMost bounds how many proxies and hosts one recount puts right; the next
// one goes on.
const recountMost = 1000

// slots are leases counted by proxy and by host.
type slots struct{ proxies, hosts map[string]int64 }

// recount compares what proxies and hosts say is in use with the leases that are
// open, and puts it right. What looks wrong in a first reading, during which
// leases come and go, is read again at one instant; only what is wrong then is
// changed, by what was missing, so that grants and releases may go on.
func (p *Pool) recount(ctx context.Context) (int, error) {
	proxies, hosts, err := p.miscounted(ctx)
	if err != nil || len(proxies)+len(hosts) == 0 {
		return 0, err
	}
	var states, slotsOf *redis.SliceCmd
	tx := p.rdb.TxPipeline()
	leases := tx.HGetAll(ctx, p.keys[keyLeases])
	epoch := tx.HGet(ctx, p.keys[keyMeta], "recounts")
	if len(proxies) > 0 {
		states = tx.HMGet(ctx, p.keys[keyProxies], proxies...)
	}
	if len(hosts) > 0 {
		slotsOf = tx.HMGet(ctx, p.keys[keyHosts], hosts...)
	}
	if _, err := tx.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("count leases: %w", err)
	}
	there, err := countSlots(leases.Val())
	if err != nil {
		return 0, err
	}
	args := []any{"0"}
	if n := epoch.Val(); n != "" {
		args[0] = n
	}
	add := func(kind string, names []string, values []any, field int, counted map[string]int64) {
		for i, name := range names {
			packed, ok := values[i].(string)
			if said, valid := packedField(packed, field); ok && valid && said != counted[name] {
				args = append(args, kind, name, counted[name]-said)
			}
		}
	}
	if states != nil {
		add("p", proxies, states.Val(), proxyInUse, there.proxies)
	}
	if slotsOf != nil {
		add("h", hosts, slotsOf.Val(), hostOpen, there.hosts)
	}
	if len(args) == 1 {
		return 0, nil
	}
	n, err := p.run(ctx, p.scripts.recount, args...).Int()
	if err != nil {
		return 0, fmt.Errorf("recount leases: %w", err)
	}
	return n, nil
}

// Places of the counts in packed values.
const (
	proxyInUse = 1
	hostOpen   = 5
)

// miscounted names the proxies and hosts whose counts differ from the leases. It
// reads them bit by bit and not at one instant: some are named for nothing.
func (p *Pool) miscounted(ctx context.Context) (proxies, hosts []string, err error) {
	leases, err := p.rdb.HGetAll(ctx, p.keys[keyLeases]).Result()
	if err != nil {
		return nil, nil, fmt.Errorf("count leases: %w", err)
	}
	counted, err := countSlots(leases)
	if err != nil {
		return nil, nil, err
	}
	if proxies, err = p.differing(ctx, keyProxies, proxyInUse, counted.proxies); err != nil {
		return nil, nil, err
	}
	hosts, err = p.differing(ctx, keyHosts, hostOpen, counted.hosts)
	return proxies, hosts, err
}

func (p *Pool) differing(ctx context.Context, key, field int, counted map[string]int64) ([]string, error) {
	names := map[string]bool{}
	for cursor := uint64(0); ; {
		pairs, next, err := p.rdb.HScan(ctx, p.keys[key], cursor, "", 500).Result()
		if err != nil {
			return nil, fmt.Errorf("read counts: %w", err)
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			if said, ok := packedField(pairs[i+1], field); ok && said != counted[pairs[i]] {
				names[pairs[i]] = true
			}
		}
		if cursor = next; cursor == 0 || len(names) >= recountMost {
			out := slices.Sorted(maps.Keys(names))
			return out[:min(len(out), recountMost)], nil
		}
	}
}

func countSlots(leases map[string]string) (slots, error) {
	s := slots{proxies: map[string]int64{}, hosts: map[string]int64{}}
	for _, packed := range leases {
		f := strings.Split(packed, "|")
		if len(f) < 8 {
			return s, fmt.Errorf("count leases: %w", ErrReply)
		}
		s.proxies[f[4]]++
		s.hosts[f[5]]++
	}
	return s, nil
}

// packedField reads the number in one field of a packed value.
func packedField(packed string, field int) (int64, bool) {
	for range field {
		_, rest, ok := strings.Cut(packed, "|")
		if !ok {
			return 0, false
		}
		packed = rest
	}
	head, _, _ := strings.Cut(packed, "|")
	n, err := strconv.ParseInt(head, 10, 64)
	return n, err == nil
}
