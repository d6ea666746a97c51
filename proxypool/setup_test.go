package proxypool_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// bundle is one pool on one Redis, whose clock can be moved on.
type bundle struct {
	*proxypool.Pool
	tb   testing.TB
	ctx  context.Context
	rdb  *redis.Client
	opts proxypool.Options
	mini *miniredis.Miniredis // nil on a real Redis
	now  time.Time            // miniredis only

	samples int // taken so far
}

// onEach runs a test on miniredis, and on the Redis that HOLDFAST_TEST_REDIS
// names (redis://host:port/db, or host:port), each time with keys of its own.
func onEach(t *testing.T, opts proxypool.Options, test func(t *testing.T, b *bundle)) {
	t.Helper()
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, onMini(t, opts))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, onReal(t, opts))
	})
}

func onMini(tb testing.TB, opts proxypool.Options) *bundle {
	tb.Helper()
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(mini.Close)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	tb.Cleanup(func() { _ = rdb.Close() })
	b := &bundle{tb: tb, ctx: context.Background(), rdb: rdb, opts: opts, mini: mini, now: time.UnixMilli(1_800_000_000_000)}
	mini.SetTime(b.now)
	b.Pool = proxypool.New(rdb, opts)
	return b
}

func onReal(tb testing.TB, opts proxypool.Options) *bundle {
	tb.Helper()
	addr := os.Getenv("HOLDFAST_TEST_REDIS")
	if addr == "" {
		tb.Skip("HOLDFAST_TEST_REDIS names no Redis")
	}
	rdb := redis.NewClient(clientOptions(tb, addr))
	ctx := context.Background()
	opts.Prefix = fmt.Sprintf("hftest:{%s-%d}:", strings.ReplaceAll(tb.Name(), "{", ""), time.Now().UnixNano())
	tb.Cleanup(func() {
		if keys, err := rdb.Keys(ctx, opts.Prefix+"*").Result(); err == nil && len(keys) > 0 {
			rdb.Del(ctx, keys...)
		}
		_ = rdb.Close()
	})
	return &bundle{Pool: proxypool.New(rdb, opts), tb: tb, ctx: ctx, rdb: rdb, opts: opts}
}

func clientOptions(tb testing.TB, addr string) *redis.Options {
	tb.Helper()
	if !strings.Contains(addr, "://") {
		return &redis.Options{Addr: addr}
	}
	o, err := redis.ParseURL(addr)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// clock returns Redis' time.
func (b *bundle) clock() time.Time {
	b.tb.Helper()
	now, err := b.rdb.Time(b.ctx).Result()
	b.ok(err)
	return now
}

// pass lets d go by on Redis' clock: at once on miniredis; a real Redis is asked
// until it has, and a test that needs more than 3 s of it ends there.
func (b *bundle) pass(d time.Duration) {
	b.tb.Helper()
	if b.mini != nil {
		b.now = b.now.Add(d)
		b.mini.SetTime(b.now)
		return
	}
	if d > 3*time.Second {
		b.tb.Skipf("the rest needs %s of a real clock", d)
	}
	until := b.clock().Add(d)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for b.clock().Before(until) {
		<-tick.C
	}
}

// client returns another client of the same Redis, which has seen no fence.
func (b *bundle) client() *proxypool.Pool { return proxypool.New(b.rdb, b.opts) }

func (b *bundle) ok(err error) {
	b.tb.Helper()
	if err != nil {
		b.tb.Fatal(err)
	}
}

// proxies imports n proxies with one lease each and returns their ids.
func (b *bundle) proxies(n int, opts proxypool.ImportOptions) []string {
	b.tb.Helper()
	entries := make([]proxypool.Entry, n)
	for i := range entries {
		entries[i].Proxy = crawl.Proxy{Scheme: "http", Host: fmt.Sprintf("10.0.%d.%d", i/250, i%250+1), Port: 3128, Username: "u", Password: "canary-secret"}
	}
	rep, err := b.Import(b.ctx, entries, opts)
	b.ok(err)
	return rep.IDs
}

// numbered is proxies, each with a tag of its own by which only(i) selects it.
func (b *bundle) numbered(n int, opts proxypool.ImportOptions) {
	b.tb.Helper()
	for i := range n {
		o := opts
		o.Tags = append([]string{fmt.Sprintf("n%d", i+1)}, opts.Tags...)
		e := proxypool.Entry{Proxy: crawl.Proxy{Scheme: "http", Host: fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), Port: 3128}}
		_, err := b.Import(b.ctx, []proxypool.Entry{e}, o)
		b.ok(err)
	}
}

func only(i int) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { proxied(r); r.Selector.Tags = []string{fmt.Sprintf("n%d", i)} }
}

func seed(i int) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { r.Seed = uint64(i+1) * 0x9e3779b97f4a7c15 }
}

// ask is a request for a direct lease at h:80; opts change it.
func ask(lease string, opts ...func(*proxypool.AcquireRequest)) proxypool.AcquireRequest {
	r := proxypool.AcquireRequest{
		LeaseID: lease, Holder: "holder of " + lease, Claimant: "claimant of " + lease, Host: "h:80",
		Selector: proxypool.Selector{Direct: true}, Seed: 7,
	}
	for _, o := range opts {
		o(&r)
	}
	return r
}

func proxied(r *proxypool.AcquireRequest) { r.Selector.Direct = false }

func holder(h string) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { r.Holder = h }
}

func claimant(c string) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { r.Claimant = c }
}

func at(host string) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { r.Host = host }
}

func every(d time.Duration) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { r.Limits.Interval = d }
}

func atMost(n int) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { r.Limits.Concurrency = n }
}

func avoid(ids ...string) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { proxied(r); r.Selector.Avoid = ids }
}

func settle(r *proxypool.AcquireRequest) { r.Settle = true }

// granted wants a grant, waits a wait of this reason, ends an end.
func (b *bundle) granted(r proxypool.AcquireRequest) proxypool.Grant {
	b.tb.Helper()
	a, err := b.Acquire(b.ctx, r)
	b.ok(err)
	if a.Grant == nil {
		b.tb.Fatalf("acquire %s: %s, want a grant", r.LeaseID, show(a))
	}
	return *a.Grant
}

func (b *bundle) waits(r proxypool.AcquireRequest, why crawl.WaitReason) time.Duration {
	b.tb.Helper()
	a, err := b.Acquire(b.ctx, r)
	b.ok(err)
	if a.Wait == nil || a.Wait.Why != why || a.Wait.After <= 0 {
		b.tb.Fatalf("acquire %s: %s, want a wait for %s", r.LeaseID, show(a), why)
	}
	return a.Wait.After
}

func (b *bundle) ends(r proxypool.AcquireRequest) *proxypool.Ended {
	b.tb.Helper()
	a, err := b.Acquire(b.ctx, r)
	b.ok(err)
	if a.Ended == nil {
		b.tb.Fatalf("acquire %s: %s, want its end", r.LeaseID, show(a))
	}
	return a.Ended
}

func show(a proxypool.Acquired) string {
	switch {
	case a.Grant != nil:
		return fmt.Sprintf("a grant %+v", *a.Grant)
	case a.Wait != nil:
		return fmt.Sprintf("a wait %+v", *a.Wait)
	case a.Ended != nil:
		return fmt.Sprintf("ended with %q", a.Ended.Outcome)
	}
	return "nothing"
}

func (b *bundle) release(lease string, v crawl.ProxyVerdict, pair crawl.PairVerdict) proxypool.Released {
	b.tb.Helper()
	r, err := b.Release(b.ctx, proxypool.ReleaseRequest{LeaseID: lease, Verdict: crawl.Verdict{Proxy: v, Pair: pair, Reason: "timeout"}})
	b.ok(err)
	return r
}

func (b *bundle) open() int {
	b.tb.Helper()
	n, err := b.OpenLeases(b.ctx)
	b.ok(err)
	return n
}

func (b *bundle) info(id string) proxypool.Info {
	b.tb.Helper()
	info, err := b.Proxy(b.ctx, id)
	b.ok(err)
	return info
}

func (b *bundle) host(host string) proxypool.HostInfo {
	b.tb.Helper()
	infos, err := b.Hosts(b.ctx, host)
	b.ok(err)
	return infos[0]
}

// near reports whether two durations are equal up to what a real clock does
// between two calls.
func (b *bundle) near(got, want time.Duration) bool {
	if b.mini != nil {
		return got == want
	}
	return got <= want+2*time.Millisecond && got > want-400*time.Millisecond
}
