package proxypool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// LeaseInfo is an open lease.
type LeaseInfo struct {
	ID    string `json:"id"`
	Fence int64  `json:"fence"`
	// Proxy is empty for a direct lease; Host while its new holder waits for a turn.
	Proxy string `json:"proxy,omitempty"`
	Host  string `json:"host,omitempty"`
	// Granted is zero while its new holder waits for a turn.
	Granted  time.Time `json:"granted,omitzero"`
	Deadline time.Time `json:"deadline"`
	Abort    bool      `json:"abort,omitempty"`
}

// Leases returns the open leases, by id. It reads them all.
func (p *Pool) Leases(ctx context.Context) ([]LeaseInfo, error) {
	all, err := p.rdb.HGetAll(ctx, p.keys[keyLeases]).Result()
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	out := make([]LeaseInfo, 0, len(all))
	for id, packed := range all {
		f := strings.Split(packed, "|")
		if len(f) < 8 {
			return nil, fmt.Errorf("list leases: %w", ErrReply)
		}
		var n [3]int64
		for i := range n {
			if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil {
				return nil, fmt.Errorf("list leases: %w", ErrReply)
			}
		}
		out = append(out, LeaseInfo{
			ID: id, Fence: n[0], Deadline: at(n[1]), Granted: at(n[2]), Abort: f[3] == "1", Proxy: f[4], Host: f[5],
		})
	}
	slices.SortFunc(out, func(a, b LeaseInfo) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// OpenLeases returns the number of open leases. One past its deadline counts
// until it is reaped.
func (p *Pool) OpenLeases(ctx context.Context) (int, error) {
	n, err := p.rdb.HLen(ctx, p.keys[keyLeases]).Result()
	if err != nil {
		return 0, fmt.Errorf("count leases: %w", err)
	}
	return int(n), nil
}

// Stats are the pool's sizes.
type Stats struct {
	Leases     int                `json:"leases"`
	Tombstones int                `json:"tombstones"`
	Outcomes   int                `json:"outcomes"`
	Hosts      int                `json:"hosts"`
	Turns      int                `json:"turns"`
	Pairs      int                `json:"pairs"`
	Sessions   int                `json:"sessions"`
	Proxies    map[ProxyState]int `json:"proxies"`
	// Scores counts the active and cooling proxies by Info.Score, a tenth of the
	// range each.
	Scores [10]int `json:"scores"`
	// Capacity is the number of leases that the active and cooling proxies
	// allow at once, InUse how many of them are taken.
	Capacity int `json:"capacity"`
	InUse    int `json:"in_use"`
}

// Stats counts what the pool holds. It reads all proxies.
func (p *Pool) Stats(ctx context.Context) (Stats, error) {
	infos, err := p.Proxies(ctx)
	if err != nil {
		return Stats{}, err
	}
	s := Stats{Proxies: map[ProxyState]int{}}
	for _, info := range infos {
		s.Proxies[info.State]++
		if info.State == StateActive || info.State == StateCooling {
			s.Capacity += info.MaxConcurrency
			s.InUse += info.InUse
			s.Scores[min(max(info.Score, 0)/100, 9)]++
		}
	}
	sizes := []struct {
		to  *int
		key int
	}{
		{&s.Leases, keyLeases},
		{&s.Tombstones, keyTombs},
		{&s.Outcomes, keyOutcomes},
		{&s.Hosts, keyHosts},
		{&s.Turns, keyTurns},
		{&s.Pairs, keyPairs},
		{&s.Sessions, keySessions},
	}
	pipe := p.rdb.Pipeline()
	cmds := make([]*redis.IntCmd, len(sizes))
	for i, size := range sizes {
		cmds[i] = pipe.HLen(ctx, p.keys[size.key])
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return Stats{}, fmt.Errorf("count pool: %w", err)
	}
	for i, size := range sizes {
		*size.to = int(cmds[i].Val())
	}
	p.opts.Observer.Counted(s)
	return s, nil
}
