package proxypool

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// capacityAge is how old an answer of Capacity may be.
const capacityAge = time.Second

// capacity is a remembered answer.
type capacity struct {
	at time.Time
	n  int
}

// Capacity returns how many leases the eligible proxies carry at once: the sum of
// their concurrencies, those that are quarantined, draining, expired or cooling
// left out. It reads the whole pool, at most once a second for each selection.
func (p *Pool) Capacity(ctx context.Context, s Selector) (int, error) {
	key := s.Region + "|" + joinSet(s.Tags) + "|" + joinSet(s.Schemes) + "|" + strconv.Itoa(s.MaxTier)
	p.capacityMu.Lock()
	defer p.capacityMu.Unlock()
	if c, ok := p.capacities[key]; ok && time.Since(c.at) < capacityAge {
		return c.n, nil
	}
	all, err := p.Proxies(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, x := range all {
		if x.State == StateActive && s.takes(x) {
			n += x.MaxConcurrency
		}
	}
	if p.capacities == nil {
		p.capacities = map[string]capacity{}
	}
	p.capacities[key] = capacity{at: time.Now(), n: n}
	return n, nil
}

// takes reports whether the selector's region, tags and schemes fit a proxy.
func (s Selector) takes(x Info) bool {
	if x.Tier > max(s.MaxTier, 0) || s.Region != "" && s.Region != x.Region {
		return false
	}
	if len(s.Schemes) > 0 && !slices.Contains(s.Schemes, x.Scheme) {
		return false
	}
	for _, tag := range s.Tags {
		if !slices.Contains(x.Tags, tag) {
			return false
		}
	}
	return true
}
