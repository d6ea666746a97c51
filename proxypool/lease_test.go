package proxypool_test

import (
	"errors"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

var quick = proxypool.Options{TTL: time.Second, TurnGrace: 300 * time.Millisecond}

func TestSameHolderGetsTheVerySameGrantAgain(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(3, proxypool.ImportOptions{})
		r := ask("a", proxied, every(time.Minute), atMost(1))
		first := b.granted(r)
		again := b.granted(r)
		if first.Fence != again.Fence || first.Proxy.ID != again.Proxy.ID || again.Host != "h:80" {
			t.Errorf("again: %+v, first: %+v", again, first)
		}
		if n := b.open(); n != 1 {
			t.Errorf("%d leases open, want 1", n)
		}
		if h := b.host("h:80"); h.Open != 1 {
			t.Errorf("host has %d open, want 1", h.Open)
		}
		if got := b.info(first.Proxy.ID).InUse; got != 1 {
			t.Errorf("proxy in use %d, want 1", got)
		}
	})
}

func TestAnotherHolderSupersedesWithAHigherFence(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(3, proxypool.ImportOptions{})
		old := b.granted(ask("a", proxied, holder("one"), atMost(1)))
		niu := b.granted(ask("a", proxied, holder("two"), atMost(1)))
		if niu.Fence <= old.Fence {
			t.Errorf("fence %d after %d, want a higher one", niu.Fence, old.Fence)
		}
		if niu.Proxy.ID != old.Proxy.ID {
			t.Errorf("proxy %s after %s, want the same", niu.Proxy.ID, old.Proxy.ID)
		}
		if _, err := b.Renew(b.ctx, "a", old.Fence); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("renew with the old fence: %v, want ErrStale", err)
		}
		if err := b.Commit(b.ctx, "a", old.Fence, []byte("x")); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("commit with the old fence: %v, want ErrStale", err)
		}
		if _, err := b.Hop(b.ctx, "a", old.Fence, "c", "other:80", proxypool.HostLimits{}); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("hop with the old fence: %v, want ErrStale", err)
		}
		if _, err := b.Renew(b.ctx, "a", niu.Fence); err != nil {
			t.Errorf("renew with the new fence: %v", err)
		}
		if h := b.host("h:80"); h.Open != 1 {
			t.Errorf("host has %d open, want 1", h.Open)
		}
	})
}

func TestSupersedingChargesTheHostsTurnAnew(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		old := b.granted(ask("a", holder("one"), every(400*time.Millisecond)))
		after := b.waits(ask("a", holder("two"), every(400*time.Millisecond)), crawl.WaitHostTurn)
		if _, err := b.Renew(b.ctx, "a", old.Fence); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("renew by the superseded holder: %v, want ErrStale at once", err)
		}
		b.pass(after)
		if niu := b.granted(ask("a", holder("two"), every(400*time.Millisecond))); niu.Fence <= old.Fence {
			t.Errorf("fence %d after %d", niu.Fence, old.Fence)
		}
		if n := b.open(); n != 1 {
			t.Errorf("%d leases open, want 1", n)
		}
	})
}

func TestAnOutcomeCommittedEndsTheExchangeForEveryHolder(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		g := b.granted(ask("a"))
		b.ok(b.Commit(b.ctx, "a", g.Fence, []byte("first")))
		b.ok(b.Commit(b.ctx, "a", g.Fence, []byte("second")))
		for _, h := range []string{"another", "holder of a"} {
			if e := b.ends(ask("a", holder(h))); string(e.Outcome) != "first" {
				t.Errorf("%s: outcome %q, want the first commit's", h, e.Outcome)
			}
		}
		if rel := b.release("a", crawl.ProxyNeutral, ""); !rel.First || string(rel.Outcome) != "first" {
			t.Errorf("release %+v, want the first, with the outcome", rel)
		}
		if e := b.ends(ask("a")); string(e.Outcome) != "first" {
			t.Errorf("after the release: outcome %q", e.Outcome)
		}
		b.ok(b.Commit(b.ctx, "a", g.Fence, []byte("first"))) // its reply was lost
		out, err := b.Committed(b.ctx, "a")
		b.ok(err)
		if string(out) != "first" {
			t.Errorf("committed %q", out)
		}
	})
}

func TestReleaseIsOnceAndLeavesATombstone(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		ids := b.proxies(1, proxypool.ImportOptions{})
		g := b.granted(ask("a", proxied, atMost(1)))
		for i := range 3 {
			if rel := b.release("a", crawl.ProxySuccess, ""); rel.First != (i == 0) || rel.Outcome != nil {
				t.Errorf("release %d: %+v", i, rel)
			}
		}
		if info := b.info(ids[0]); info.Successes != 1 || info.InUse != 0 {
			t.Errorf("after three releases: %d samples, %d in use; want 1 and 0", info.Successes, info.InUse)
		}
		if h := b.host("h:80"); h.Open != 0 {
			t.Errorf("host has %d open", h.Open)
		}
		if e := b.ends(ask("a", proxied)); e.Outcome != nil {
			t.Errorf("ended with %q, want no outcome", e.Outcome)
		}
		if _, err := b.Renew(b.ctx, "a", g.Fence); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("renew after release: %v", err)
		}
		if err := b.Commit(b.ctx, "a", g.Fence, []byte("x")); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("commit after release: %v", err)
		}
	})
}

func TestAnAcquireThatArrivesAfterItsReleaseIsRefused(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		if rel := b.release("late", crawl.ProxyNeutral, ""); rel.First {
			t.Error("release of an unknown id says it was the first")
		}
		b.ends(ask("late"))
		if n := b.open(); n != 0 {
			t.Errorf("%d leases open", n)
		}
	})
}

func TestSettleNeverGrants(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		ids := b.proxies(2, proxypool.ImportOptions{})
		if e := b.ends(ask("never acquired", settle)); e.Outcome != nil {
			t.Errorf("outcome %q", e.Outcome)
		}
		b.ends(ask("never acquired"))

		g := b.granted(ask("held", proxied))
		if e := b.ends(ask("held", settle)); e.Outcome != nil {
			t.Errorf("outcome %q", e.Outcome)
		}
		if _, err := b.Renew(b.ctx, "held", g.Fence); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("renew after settle: %v", err)
		}
		if info := b.info(g.Proxy.ID); info.InUse != 0 || info.Successes+info.Failures != 0 {
			t.Errorf("proxy after settle: %+v", info)
		}

		g = b.granted(ask("done", proxied))
		b.ok(b.Commit(b.ctx, "done", g.Fence, []byte("page")))
		if e := b.ends(ask("done", settle)); string(e.Outcome) != "page" {
			t.Errorf("outcome %q, want the page", e.Outcome)
		}
		if rel := b.release("done", crawl.ProxySuccess, ""); !rel.First {
			t.Error("settling a committed lease took its health sample away")
		}
		if n := b.open(); n != 0 {
			t.Errorf("%d leases open", n)
		}
		_ = ids
	})
}

func TestAnExpiredLeaseIsRefusedFreedAndEnded(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		ids := b.proxies(1, proxypool.ImportOptions{})
		g := b.granted(ask("a", proxied, atMost(1)))
		b.pass(700 * time.Millisecond)
		if _, err := b.Renew(b.ctx, "a", g.Fence); err != nil {
			t.Fatalf("renew in time: %v", err)
		}
		b.pass(700 * time.Millisecond)
		if _, err := b.Renew(b.ctx, "a", g.Fence); err != nil {
			t.Fatalf("renewed lease did not last another ttl: %v", err)
		}
		b.pass(1001 * time.Millisecond)
		if _, err := b.Renew(b.ctx, "a", g.Fence); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("renew too late: %v, want ErrStale", err)
		}
		if err := b.Commit(b.ctx, "a", g.Fence, []byte("x")); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("commit too late: %v, want ErrStale", err)
		}
		n, err := b.Reap(b.ctx)
		b.ok(err)
		if n != 1 || b.open() != 0 {
			t.Errorf("reaped %d, %d left; want 1, 0", n, b.open())
		}
		if info := b.info(ids[0]); info.InUse != 0 || info.Successes+info.Failures+info.Unclear != 0 {
			t.Errorf("proxy after reaping: %+v", info)
		}
		if h := b.host("h:80"); h.Open != 0 {
			t.Errorf("host has %d open", h.Open)
		}
		b.ends(ask("a", proxied))
		if rel := b.release("a", crawl.ProxyFailure, ""); rel.First {
			t.Error("release after the reaper took a sample")
		}
	})
}

func TestAcquireReapsWhatIsInItsWay(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(1, proxypool.ImportOptions{})
		b.granted(ask("dead", proxied, atMost(1)))
		b.pass(1001 * time.Millisecond)
		b.granted(ask("next", proxied, atMost(1)))
		if n := b.open(); n != 1 {
			t.Errorf("%d leases open, want 1", n)
		}
	})
}

func TestAReapedLeaseKeepsItsOutcome(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		g := b.granted(ask("a"))
		b.ok(b.Commit(b.ctx, "a", g.Fence, []byte("page")))
		b.pass(1001 * time.Millisecond)
		if n, err := b.Reap(b.ctx); err != nil || n != 1 {
			t.Fatalf("reaped %d, %v", n, err)
		}
		if e := b.ends(ask("a", holder("another"))); string(e.Outcome) != "page" {
			t.Errorf("outcome %q", e.Outcome)
		}
	})
}

func TestAbortIsSeenByTheHoldersNextRenewal(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		g := b.granted(ask("a"))
		r, err := b.Renew(b.ctx, "a", g.Fence)
		b.ok(err)
		if r.Abort {
			t.Error("abort without anybody's asking")
		}
		b.ok(b.Abort(b.ctx, "a"))
		r, err = b.Renew(b.ctx, "a", g.Fence)
		b.ok(err)
		if !r.Abort {
			t.Error("renewal does not show the abort")
		}
	})
}

func TestAnAcquireThatArrivesAfterItsAbortFindsItEnded(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.ok(b.Abort(b.ctx, "late"))
		a, err := b.Acquire(b.ctx, ask("late"))
		b.ok(err)
		if a.Ended == nil || a.Ended.Outcome != nil {
			t.Errorf("got %+v, want the end of the lease", a)
		}
	})
}

func TestSettleSaysWhetherItEndedTheLease(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		settle := func(lease string) *proxypool.Ended {
			r := ask(lease)
			r.Settle = true
			a, err := b.Acquire(b.ctx, r)
			b.ok(err)
			if a.Ended == nil {
				t.Fatalf("settle %s: %+v", lease, a)
			}
			return a.Ended
		}
		if !settle("never").Fresh {
			t.Error("a lease that nobody had is not ended afresh")
		}
		b.granted(ask("held"))
		if !settle("held").Fresh {
			t.Error("a lease in mid-exchange is not ended afresh")
		}
		if settle("held").Fresh {
			t.Error("an ended lease is ended afresh")
		}
	})
}

func TestASecondHolderIsToldThatAnotherHadTheLease(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		if b.granted(ask("a")).Superseded {
			t.Error("the first holder is told of another")
		}
		again := ask("a")
		again.Holder = "successor"
		for range 2 { // the second call is the first's lost reply
			if !b.granted(again).Superseded {
				t.Error("the second holder is not told")
			}
		}
	})
}

func TestDeadlineIsBeforeRedisOwn(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		before := time.Now()
		g := b.granted(ask("a"))
		if got := g.Deadline.Sub(before); got < 39*time.Second || got > 41*time.Second {
			t.Errorf("deadline %s after the call, want 45 s less a margin of 5 s", got)
		}
	})
}

func TestTombstonesAreTrimmedWhenTheirTimeIsOver(t *testing.T) {
	onEach(t, proxypool.Options{TTL: time.Second, TombstoneKeep: 500 * time.Millisecond}, func(t *testing.T, b *bundle) {
		g := b.granted(ask("a"))
		b.ok(b.Commit(b.ctx, "a", g.Fence, []byte("page")))
		b.release("a", crawl.ProxyNeutral, "")
		if _, err := b.Reap(b.ctx); err != nil {
			t.Fatal(err)
		}
		b.ends(ask("a"))
		b.pass(501 * time.Millisecond)
		if _, err := b.Reap(b.ctx); err != nil {
			t.Fatal(err)
		}
		s, err := b.Stats(b.ctx)
		b.ok(err)
		if s.Tombstones != 0 || s.Outcomes != 0 {
			t.Errorf("%d tombstones and %d outcomes left", s.Tombstones, s.Outcomes)
		}
	})
}

func TestRequestsThatThePackedRecordsCannotHoldAreRefused(t *testing.T) {
	t.Parallel()
	b := onMini(t, quick)
	for name, r := range map[string]proxypool.AcquireRequest{
		"no lease id":         ask(""),
		"no holder":           ask("a", holder("")),
		"no claimant":         ask("a", claimant("")),
		"no host":             ask("a", at("")),
		"host with a blank":   ask("a", at("h 80")),
		"holder with a bar":   ask("a", holder("x|y")),
		"host with a newline": ask("a", at("h\n:80")),
	} {
		if _, err := b.Acquire(b.ctx, r); !errors.Is(err, proxypool.ErrRequest) {
			t.Errorf("%s: %v, want ErrRequest", name, err)
		}
	}
}
