package proxypool_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// leaseModel is what the lease API promises, kept in plain maps: who holds what
// under which fence, what has ended, and when each host and proxy was last granted.
type leaseModel struct {
	b        *bundle
	leases   map[string]*heldLease
	ended    map[string]string // lease id → outcome
	lastHost map[string]time.Time
	lastUse  map[string]time.Time
	closed   map[string]time.Time
	samples  int64
	fence    int64
}

type heldLease struct {
	holder, host, proxy, outcome string
	fence                        int64
	deadline                     time.Time
	granted                      bool
}

const (
	modelTTL      = time.Second
	modelInterval = 50 * time.Millisecond
	modelReuse    = 30 * time.Millisecond
	modelPerHost  = 2
)

var modelHosts = []string{"a:80", "b:80"}

func TestTheLeaseAPIKeepsItsPromises(t *testing.T) {
	onEach(t, proxypool.Options{TTL: modelTTL}, func(t *testing.T, b *bundle) {
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			fresh := *b
			fresh.opts.Prefix = fmt.Sprintf("%s%d:", b.keysOf("")[0], round)
			fresh.Pool = proxypool.New(b.rdb, fresh.opts)
			fresh.proxies(3, proxypool.ImportOptions{MinReuse: modelReuse})
			m := &leaseModel{
				b: &fresh, leases: map[string]*heldLease{}, ended: map[string]string{},
				lastHost: map[string]time.Time{}, lastUse: map[string]time.Time{}, closed: map[string]time.Time{},
			}
			rt.Repeat(map[string]func(*rapid.T){
				"acquire": m.acquire, "renew": m.renew, "commit": m.commit, "release": m.release,
				"hop": m.hop, "reap": m.reap, "settle": m.settle, "close": m.closeHost, "pass": m.pass,
				"": m.check,
			})
			*b = bundle{Pool: b.Pool, tb: b.tb, ctx: b.ctx, rdb: b.rdb, opts: b.opts, mini: b.mini, now: fresh.now}
		})
	})
}

var leaseIDs = rapid.SampledFrom([]string{"l1", "l2", "l3", "l4", "l5"})

func (m *leaseModel) expired(l *heldLease) bool { return !l.deadline.After(m.b.clock()) }

func (m *leaseModel) acquire(t *rapid.T) {
	id := leaseIDs.Draw(t, "lease")
	r := proxypool.AcquireRequest{
		LeaseID: id, Holder: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "holder"), Claimant: "c" + id,
		Host:   rapid.SampledFrom(modelHosts).Draw(t, "host"),
		Limits: proxypool.HostLimits{Interval: modelInterval, Concurrency: modelPerHost}, Seed: rapid.Uint64().Draw(t, "seed"),
	}
	before := m.b.clock()
	a, err := m.b.Acquire(m.b.ctx, r)
	m.b.ok(err)
	after := m.b.clock()
	m.endDue(before)
	held := m.leases[id]
	outcome, over := m.ended[id]
	switch {
	case a.Ended != nil:
		switch {
		case over && string(a.Ended.Outcome) != outcome:
			t.Fatalf("ended %s with %q, want %q", id, a.Ended.Outcome, outcome)
		case !over && held == nil:
			t.Fatalf("%s never was and is said to have ended", id)
		case held != nil && string(a.Ended.Outcome) != held.outcome:
			t.Fatalf("%s is held and answers %q, want %q", id, a.Ended.Outcome, held.outcome)
		case held != nil && held.outcome == "" && held.deadline.After(after):
			t.Fatalf("%s is held, has no outcome and is said to have ended", id)
		}
		if held != nil && held.outcome == "" {
			m.end(id)
		}
	case over:
		t.Fatalf("%s has ended and answers %s", id, show(a))
	case held != nil && held.outcome != "":
		t.Fatalf("%s has an outcome and answers %s", id, show(a))
	case a.Wait != nil:
		if held != nil && held.holder != r.Holder {
			held.holder, held.granted, held.host, held.fence = r.Holder, false, "", 0
		}
		if held != nil {
			held.deadline = after.Add(modelTTL)
		}
	default:
		m.granted(t, r, held, *a.Grant, before, after)
	}
}

// granted checks a grant against the limits and takes it into the model.
func (m *leaseModel) granted(t *rapid.T, r proxypool.AcquireRequest, held *heldLease, g proxypool.Grant, before, after time.Time) {
	if held != nil && held.granted && held.holder == r.Holder {
		if g.Fence != held.fence || g.Host != held.host || g.Proxy.ID != held.proxy {
			t.Fatalf("the same holder got %+v, want %+v", g, *held)
		}
		held.deadline = after.Add(modelTTL)
		return
	}
	if g.Fence <= m.fence {
		t.Fatalf("fence %d after %d", g.Fence, m.fence)
	}
	m.fence = g.Fence
	if held != nil && held.proxy != g.Proxy.ID {
		t.Fatalf("superseded with %s, want %s again", g.Proxy.ID, held.proxy)
	}
	if after.Before(m.closed[r.Host]) {
		t.Fatalf("%s granted %s before it opens", r.Host, m.closed[r.Host].Sub(after))
	}
	if d := after.Sub(m.lastHost[r.Host]); d < modelInterval {
		t.Fatalf("%s granted %s after the grant before", r.Host, d)
	}
	if d := after.Sub(m.lastUse[g.Proxy.ID]); d < modelReuse {
		t.Fatalf("%s granted %s after the grant before", g.Proxy.ID, d)
	}
	m.leases[r.LeaseID] = &heldLease{holder: r.Holder, host: r.Host, proxy: g.Proxy.ID, fence: g.Fence, deadline: after.Add(modelTTL), granted: true}
	m.lastHost[r.Host], m.lastUse[g.Proxy.ID] = before, before
	atHost, inUse := 0, 0
	for _, l := range m.leases {
		if l.deadline.After(after) && l.host == r.Host {
			atHost++
		}
		if l.deadline.After(after) && l.proxy == g.Proxy.ID {
			inUse++
		}
	}
	if atHost > modelPerHost || inUse > 1 {
		t.Fatalf("%d leases at %s, %d of %s", atHost, r.Host, inUse, g.Proxy.ID)
	}
}

// someFence draws the fence of a lease: the current one, or an old one.
func (m *leaseModel) someFence(t *rapid.T, id string) (int64, bool) {
	l := m.leases[id]
	if l == nil || !l.granted || rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
		return rapid.Int64Range(0, m.fence+1).Filter(func(n int64) bool { return l == nil || n != l.fence }).Draw(t, "fence"), false
	}
	return l.fence, true
}

func (m *leaseModel) renew(t *rapid.T) {
	id := leaseIDs.Draw(t, "lease")
	fence, current := m.someFence(t, id)
	l := m.leases[id]
	if l != nil && !l.granted {
		return // its fence is not known here
	}
	_, err := m.b.Renew(m.b.ctx, id, fence)
	m.mustHold(t, "renew", id, current, err)
	if err == nil {
		l.deadline = m.b.clock().Add(modelTTL)
	}
}

// mustHold wants success just for the current fence in time, else ErrStale.
func (m *leaseModel) mustHold(t *rapid.T, what, id string, current bool, err error) {
	if err != nil && !errors.Is(err, proxypool.ErrStale) {
		t.Fatal(err)
	}
	if err == nil && !current {
		t.Fatalf("%s of %s with a fence that is not its own", what, id)
	}
	if err != nil && current && !m.expired(m.leases[id]) {
		t.Fatalf("%s of %s by its holder, in time: %v", what, id, err)
	}
}

func (m *leaseModel) commit(t *rapid.T) {
	id := leaseIDs.Draw(t, "lease")
	fence, current := m.someFence(t, id)
	l := m.leases[id]
	if l == nil || !l.granted {
		return
	}
	out := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "outcome")
	err := m.b.Commit(m.b.ctx, id, fence, []byte(out))
	m.mustHold(t, "commit", id, current, err)
	if err == nil && l.outcome == "" {
		l.outcome = out
	}
}

func (m *leaseModel) release(t *rapid.T) {
	id := leaseIDs.Draw(t, "lease")
	_, over := m.ended[id]
	held := m.leases[id]
	rel := m.b.release(id, crawl.ProxySuccess, crawl.PairPassed)
	if rel.First && (over || held == nil) {
		t.Fatalf("the release of %s, not held, says first", id)
	}
	if !rel.First && held != nil && !m.expired(held) {
		t.Fatalf("the first release of %s says it was not", id)
	}
	if rel.First {
		m.samples++
	}
	if held != nil {
		m.end(id)
	} else if !over {
		m.ended[id] = ""
	}
	if string(rel.Outcome) != m.ended[id] {
		t.Fatalf("release of %s has outcome %q, want %q", id, rel.Outcome, m.ended[id])
	}
}

func (m *leaseModel) hop(t *rapid.T) {
	id := leaseIDs.Draw(t, "lease")
	l := m.leases[id]
	if l == nil || !l.granted {
		return
	}
	host := rapid.SampledFrom(modelHosts).Draw(t, "host")
	before := m.b.clock()
	a, err := m.b.Hop(m.b.ctx, id, l.fence, "c"+id, host, proxypool.HostLimits{Interval: modelInterval, Concurrency: modelPerHost})
	after := m.b.clock()
	m.mustHold(t, "hop", id, true, err)
	if err != nil {
		return
	}
	l.deadline = after.Add(modelTTL)
	if a.Grant == nil || l.host == host {
		return
	}
	if after.Before(m.closed[host]) || after.Sub(m.lastHost[host]) < modelInterval {
		t.Fatalf("hop to %s before its turn", host)
	}
	l.host = host
	m.lastHost[host] = before
}

func (m *leaseModel) settle(t *rapid.T) {
	id := leaseIDs.Draw(t, "lease")
	e := m.b.ends(ask(id, settle))
	held := m.leases[id]
	want := m.ended[id]
	if held != nil {
		want = held.outcome
	}
	if string(e.Outcome) != want {
		t.Fatalf("settled %s with %q, want %q", id, e.Outcome, want)
	}
	switch {
	case held != nil && (held.outcome == "" || m.expired(held)):
		m.end(id)
	case held == nil:
		m.ended[id] = want
	}
}

func (m *leaseModel) closeHost(t *rapid.T) {
	host := rapid.SampledFrom(modelHosts).Draw(t, "host")
	d := time.Duration(rapid.IntRange(1, 200).Draw(t, "ms")) * time.Millisecond
	before := m.b.clock()
	m.b.ok(m.b.CloseHost(m.b.ctx, host, d))
	if until := before.Add(d); until.After(m.closed[host]) {
		m.closed[host] = until
	}
}

func (m *leaseModel) pass(t *rapid.T) {
	long := 1500
	if m.b.mini == nil {
		long = 60 // real time
	}
	m.b.pass(time.Duration(rapid.IntRange(1, long).Draw(t, "ms")) * time.Millisecond)
}

func (m *leaseModel) reap(t *rapid.T) {
	before := m.b.clock()
	_, err := m.b.Reap(m.b.ctx)
	m.b.ok(err)
	m.endDue(before)
	open, err := m.b.Leases(m.b.ctx)
	m.b.ok(err)
	for _, l := range open {
		if !l.Deadline.After(before) {
			t.Fatalf("%s is past its deadline and open after reaping", l.ID)
		}
	}
}

// awayFromDeadlines waits, on a real clock, until no lease is so near its
// deadline that nobody can say whether a call comes before it.
func (m *leaseModel) awayFromDeadlines() {
	if m.b.mini != nil {
		return
	}
	const slack = 50 * time.Millisecond
	for {
		now := m.b.clock()
		near := false
		for _, l := range m.leases {
			near = near || l.deadline.After(now.Add(-slack)) && l.deadline.Before(now.Add(slack))
		}
		if !near {
			return
		}
		m.b.pass(slack)
	}
}

// endDue ends in the model what is past its deadline.
func (m *leaseModel) endDue(now time.Time) int {
	n := 0
	for id, l := range m.leases {
		if !l.deadline.After(now) {
			m.end(id)
			n++
		}
	}
	return n
}

func (m *leaseModel) end(id string) {
	m.ended[id] = m.leases[id].outcome
	delete(m.leases, id)
}

// check compares what Redis holds with the model.
func (m *leaseModel) check(t *rapid.T) {
	m.awayFromDeadlines()
	open, err := m.b.Leases(m.b.ctx)
	m.b.ok(err)
	now := m.b.clock()
	inUse, atHost := map[string]int{}, map[string]int{}
	for _, l := range open {
		if l.Deadline.After(now) && m.leases[l.ID] == nil {
			t.Fatalf("%s is open, and should not be", l.ID)
		}
		inUse[l.Proxy]++
		atHost[l.Host]++
	}
	for id, l := range m.leases {
		found := slices.ContainsFunc(open, func(o proxypool.LeaseInfo) bool { return o.ID == id })
		if !found && l.deadline.After(now) {
			t.Fatalf("%s is not open, and should be", id)
		}
	}
	infos, err := m.b.Proxies(m.b.ctx)
	m.b.ok(err)
	var samples int64
	for _, info := range infos {
		samples += info.Successes + info.Failures
		if info.InUse != inUse[info.ID] {
			t.Fatalf("%s says it is in use %d times, %d leases have it", info.ID, info.InUse, inUse[info.ID])
		}
	}
	if samples != m.samples {
		t.Fatalf("%d health samples of %d first releases", samples, m.samples)
	}
	hosts, err := m.b.Hosts(m.b.ctx, modelHosts...)
	m.b.ok(err)
	for _, h := range hosts {
		if h.Open != atHost[h.Host] {
			t.Fatalf("%s says %d open, %d leases are there", h.Host, h.Open, atHost[h.Host])
		}
	}
}
