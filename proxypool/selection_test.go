package proxypool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

func session(name string) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { proxied(r); r.Selector.Session = name }
}

func upTo(tier int) func(*proxypool.AcquireRequest) {
	return func(r *proxypool.AcquireRequest) { proxied(r); r.Selector.MaxTier = tier }
}

// use takes a lease, releases it as a success and returns its proxy's id.
func (b *bundle) use(opts ...func(*proxypool.AcquireRequest)) string {
	b.tb.Helper()
	b.samples++
	g := b.granted(ask(fmt.Sprint("use ", b.samples), append(opts, seed(b.samples))...))
	b.release(g.LeaseID, crawl.ProxySuccess, crawl.PairPassed)
	return g.Proxy.ID
}

func TestTheCheapestTierThatWorksIsUsed(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.load("cheap1:1\ncheap2:1", proxypool.ImportOptions{Tags: []string{"x"}})
		b.load("dear:1", proxypool.ImportOptions{Tags: []string{"x"}, Tier: 2, MaxConcurrency: 2})
		b.load("dearest:1", proxypool.ImportOptions{Tags: []string{"x"}, Tier: 9})
		for range 10 {
			if id := b.use(upTo(9)); id != "p01" && id != "p02" {
				t.Errorf("got %s while a cheap one is free", id)
			}
		}
		if id := b.use(upTo(2), avoid("p01", "p02"), upTo(2)); id != "p03" {
			t.Errorf("both cheap ones to avoid: got %s, want p03", id)
		}
		if id := b.use(avoid("p01", "p02")); id != "p01" && id != "p02" {
			t.Errorf("both to avoid, no dearer tier allowed: got %s", id)
		}
		b.granted(ask("a", proxied))
		b.granted(ask("b", proxied))
		b.waits(ask("c", upTo(9)), crawl.WaitProxyBusy) // they free soon: not worth the money
		b.release("a", crawl.ProxyFailure, "")
		b.release("b", crawl.ProxyFailure, "") // both cool for 30 s
		if id := b.use(upTo(9)); id != "p03" {
			t.Errorf("the cheap ones cool: got %s, want p03", id)
		}
		b.waits(ask("d", proxied), crawl.WaitProxyBusy)
		b.ok(b.Quarantine(b.ctx, "p01", "p02", "p03"))
		b.waits(ask("e", upTo(8)), crawl.WaitNoProxy)
		if id := b.use(upTo(9), func(r *proxypool.AcquireRequest) { r.Selector.Tags = []string{"x"} }); id != "p04" {
			t.Errorf("got %s, want p04", id)
		}
		b.load("dearest:1", proxypool.ImportOptions{Tags: []string{"x"}, Tier: 1})
		if id := b.use(upTo(1)); id != "p04" {
			t.Errorf("after it became cheaper: got %s, want p04", id)
		}
		if n, err := b.client().Capacity(b.ctx, proxypool.Selector{}); err != nil || n != 0 {
			t.Errorf("capacity of the cheapest tier %d, %v; want 0", n, err)
		}
		if n, err := b.client().Capacity(b.ctx, proxypool.Selector{MaxTier: 1}); err != nil || n != 1 {
			t.Errorf("capacity up to tier 1 %d, %v; want 1", n, err)
		}
	})
}

func TestATierIsANumberFrom0To9(t *testing.T) {
	t.Parallel()
	b := onMini(t, quick)
	for _, tier := range []int{-1, 10} {
		_, err := b.Import(b.ctx, []proxypool.Entry{{Proxy: crawl.Proxy{Host: "a", Port: 1}, Tier: tier}}, proxypool.ImportOptions{})
		if !errors.Is(err, proxypool.ErrRequest) {
			t.Errorf("tier %d: %v", tier, err)
		}
	}
}

func TestASessionKeepsItsProxy(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.proxies(8, proxypool.ImportOptions{MaxConcurrency: 2})
		mine := b.use(session("s"))
		for range 5 {
			if id := b.use(session("s"), at("other:80")); id != mine {
				t.Errorf("got %s, want %s", id, mine)
			}
		}
		if id := b.use(avoid(mine), session("s")); id != mine {
			t.Errorf("its proxy to avoid: got %s, want %s all the same", id, mine)
		}
		b.granted(ask("one", session("s")))
		b.granted(ask("two", session("s")))
		b.waits(ask("three", session("s")), crawl.WaitProxyBusy)
		b.release("one", crawl.ProxyFailure, "")
		b.release("two", crawl.ProxyFailure, "")
		if after := b.waits(ask("cooling", session("s")), crawl.WaitProxyBusy); !b.near(after, 30*time.Second) {
			t.Errorf("its proxy cools: wait %s, want 30 s", after)
		}
		for name, end := range map[string]func(){
			"quarantined": func() { b.ok(b.Quarantine(b.ctx, mine)) },
			"drained":     func() { b.ok(b.Drain(b.ctx, mine)) },
			"removed":     func() { b.ok(b.Remove(b.ctx, mine)) },
		} {
			end()
			next := b.use(session("s"))
			if next == mine {
				t.Errorf("%s: the session has it still", name)
			}
			mine = next
			if id := b.use(session("s")); id != mine {
				t.Errorf("%s: then %s, want %s again", name, id, mine)
			}
		}
	})
}

func TestASessionEndsSomeTimeAfterItsLastLease(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{SessionTTL: time.Minute})
	b.proxies(20, proxypool.ImportOptions{})
	mine := b.use(session("s"))
	for range 3 {
		b.pass(50 * time.Second)
		if id := b.use(session("s")); id != mine {
			t.Fatalf("got %s, want %s: each lease keeps it on", id, mine)
		}
	}
	others := map[string]bool{}
	for range 8 {
		b.pass(61 * time.Second)
		others[b.use(session("s"))] = true
	}
	if len(others) < 3 {
		t.Errorf("ended sessions began with %v only", others)
	}
	b.pass(61 * time.Second)
	for range 3 {
		_, err := b.Reap(b.ctx)
		b.ok(err)
	}
	if s, err := b.Stats(b.ctx); err != nil || s.Sessions != 0 {
		t.Errorf("%d sessions kept, %v", s.Sessions, err)
	}
}

func TestASessionThatItsHostBlocksMovesOn(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.proxies(4, proxypool.ImportOptions{})
	mine := b.use(session("s"))
	for range 6 {
		b.use(avoid(mine)) // the others pass
	}
	for i := range 2 {
		b.lend(fmt.Sprint("blocked ", i), "h:80", crawl.ProxyNeutral, crawl.PairBlocked, session("s"))
	}
	if id := b.use(session("s")); id == mine {
		t.Errorf("the session is still on %s, which the host blocks", mine)
	}
}

func TestAGatewayGivesEachSessionAnIdentityOfItsOwn(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.load("user-session-{session}:secret@gate.example:7000", proxypool.ImportOptions{MaxConcurrency: 20})
		name := func(lease string, opts ...func(*proxypool.AcquireRequest)) string {
			g := b.granted(ask(lease, append(opts, proxied)...))
			if !strings.HasPrefix(g.Proxy.Username, "user-session-") || strings.ContainsAny(g.Proxy.Username, "{}") || len(g.Proxy.Username) != len("user-session-")+16 {
				t.Errorf("user name %q", g.Proxy.Username)
			}
			if g.Proxy.Password != "secret" || g.Proxy.Addr() != "gate.example:7000" {
				t.Errorf("%s, password %q", g.Proxy.Addr(), g.Proxy.Password)
			}
			return g.Proxy.Username
		}
		a, other := name("a"), name("b", avoid("p01"))
		if a == other {
			t.Error("two leases have one identity")
		}
		if again := name("a"); again != a {
			t.Error("the same lease has another identity")
		}
		if taken := name("a", holder("another")); taken != a {
			t.Error("the lease has another identity under its next holder")
		}
		if name("c", session("s")) != name("d", session("s")) {
			t.Error("one session has two identities")
		}
		if !b.info("p01").Gateway {
			t.Error("it does not say that it is a gateway")
		}
	})
}

func TestALeaseEndsWithItsProxy(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.proxies(1, proxypool.ImportOptions{Expires: b.now.Add(time.Minute)})
	g := b.granted(ask("a", proxied))
	b.pass(40 * time.Second)
	sent := time.Now()
	r, err := b.Renew(b.ctx, "a", g.Fence)
	b.ok(err)
	if left := r.Deadline.Sub(sent); left > 17*time.Second || left < 10*time.Second {
		t.Errorf("renewed 20 s before the proxy's end: trusted for %s, want 20 s less the margin of 5 s", left)
	}
	leases, err := b.Leases(b.ctx)
	b.ok(err)
	if want := b.now.Add(20 * time.Second); !leases[0].Deadline.Equal(want) {
		t.Errorf("deadline %s, want %s", leases[0].Deadline, want)
	}
	b.pass(20 * time.Second)
	if _, err := b.Renew(b.ctx, "a", g.Fence); !errors.Is(err, proxypool.ErrStale) {
		t.Errorf("renew after the proxy's end: %v, want ErrStale", err)
	}
	if n, err := b.Reap(b.ctx); err != nil || n != 1 {
		t.Errorf("%d reaped, %v; want 1", n, err)
	}
}
