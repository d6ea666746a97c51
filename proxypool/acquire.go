package proxypool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/crawl"
)

// Acquire asks for a lease: a turn at the host and, unless Selector.Direct, a
// proxy. See AcquireRequest for the ids; the answer is exactly one of a grant, a
// wait and the end of this lease. Errors: ErrRequest, or Redis did not answer.
//
// A wait for the host's turn is a reservation for the claimant. A wait for a
// proxy charges the host nothing.
func (p *Pool) Acquire(ctx context.Context, r AcquireRequest) (Acquired, error) {
	args, err := p.acquireArgs(r)
	if err != nil {
		return Acquired{}, err
	}
	sent := time.Now()
	a, err := p.acquire(ctx, r, sent, args)
	p.opts.Observer.Acquired(a, time.Since(sent), err)
	return a, err
}

func (p *Pool) acquire(ctx context.Context, r AcquireRequest, sent time.Time, args []any) (Acquired, error) {
	reply, err := p.run(ctx, p.scripts.acquire, args...).StringSlice()
	if err != nil {
		return Acquired{}, fmt.Errorf("acquire lease: %w", err)
	}
	a, err := p.acquired(r.LeaseID, r.Selector.Session, sent, reply)
	if err != nil {
		return Acquired{}, fmt.Errorf("acquire lease: %w", err)
	}
	return a, nil
}

func (p *Pool) acquireArgs(r AcquireRequest) ([]any, error) {
	if err := checkField("lease id", r.LeaseID); err != nil {
		return nil, err
	}
	mode := "proxy"
	switch {
	case r.Settle:
		mode = "settle"
	case r.Selector.Direct:
		mode = "direct"
	}
	if mode != "settle" {
		for name, v := range map[string]string{"holder": r.Holder, "claimant": r.Claimant} {
			if err := checkField(name, v); err != nil {
				return nil, err
			}
		}
		if err := checkHost(r.Host); err != nil {
			return nil, err
		}
		if r.Selector.Session != "" {
			if err := checkField("session", r.Selector.Session); err != nil {
				return nil, err
			}
		}
	}
	schemes := ""
	if len(r.Selector.Schemes) > 0 {
		schemes = joinSet(r.Selector.Schemes)
	}
	args := []any{
		r.LeaseID, r.Holder, r.Claimant, r.Host,
		millis(r.Limits.Interval), max(r.Limits.Concurrency, 0), mode, millis(p.opts.TTL),
		p.seen.Load(), r.Seed%2147483646 + 1, millis(p.opts.TurnGrace), millis(p.opts.TombstoneKeep),
		millis(p.opts.Patience), millis(p.opts.NoProxyWait),
		r.Selector.Region, schemes, strings.Join(r.Selector.Tags, ","),
		min(max(r.Selector.MaxTier, 0), MaxTier), r.Selector.Session, millis(p.opts.SessionTTL),
	}
	for _, id := range r.Selector.Avoid {
		args = append(args, id)
	}
	return args, nil
}

// joinSet packs words so that a plain search for ",word," finds one.
func joinSet(words []string) string {
	if len(words) == 0 {
		return ""
	}
	sorted := slices.Clone(words)
	slices.Sort(sorted)
	return "," + strings.Join(slices.Compact(sorted), ",") + ","
}

// acquired reads the answer of acquire and hop.
func (p *Pool) acquired(leaseID, session string, sent time.Time, reply []string) (Acquired, error) {
	kind := ""
	if len(reply) > 0 {
		kind = reply[0]
	}
	switch {
	case kind == "grant" && len(reply) == 7:
		g, err := p.grant(leaseID, session, sent, reply)
		return Acquired{Grant: g}, err
	case kind == "wait" && len(reply) == 4:
		after, err := parseMillis(reply[1])
		return Acquired{Wait: &Wait{After: after, Why: crawl.WaitReason(reply[2]), Held: reply[3] == "1"}}, err
	case kind == "ended" && len(reply) == 5:
		e := &Ended{Fresh: reply[3] == "1", Open: reply[4] == "1"}
		if reply[1] == "1" {
			e.Outcome = []byte(reply[2])
		}
		return Acquired{Ended: e}, nil
	case kind == "stale":
		return Acquired{}, ErrStale
	}
	return Acquired{}, fmt.Errorf("%w: %d fields", ErrReply, len(reply))
}

func (p *Pool) grant(leaseID, session string, sent time.Time, reply []string) (*Grant, error) {
	fence, err := strconv.ParseInt(reply[1], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: fence", ErrReply)
	}
	left, err := parseMillis(reply[6])
	if err != nil {
		return nil, err
	}
	p.saw(fence)
	g := &Grant{LeaseID: leaseID, Fence: fence, Host: reply[4], Superseded: reply[5] == "1", Deadline: p.deadline(sent, left)}
	if reply[2] != "" {
		proxy, err := decodeConfig(reply[2], reply[3])
		if err != nil {
			return nil, err
		}
		expand(&proxy, cmp.Or(session, leaseID))
		g.Proxy = &proxy
	}
	return g, nil
}

// deadline is on the monotonic clock and starts before the call was sent, so
// that it is never later than Redis' own.
func (p *Pool) deadline(sent time.Time, left time.Duration) time.Time {
	return sent.Add(left - p.opts.Margin)
}
