package proxypool_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// lend grants and releases one lease with a verdict.
func (b *bundle) lend(name, host string, v crawl.ProxyVerdict, pair crawl.PairVerdict, opts ...func(*proxypool.AcquireRequest)) {
	b.tb.Helper()
	b.granted(ask(name, append(opts, proxied, at(host))...))
	b.release(name, v, pair)
}

func TestFailuresInARowCoolLongerAndASuccessResets(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.proxies(1, proxypool.ImportOptions{})
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		b.lend(fmt.Sprint("f", i), "h:80", crawl.ProxyFailure, "")
		info := b.info("p01")
		if got := info.CoolingUntil.Sub(b.now); info.State != proxypool.StateCooling || got != want || info.Consecutive != i+1 {
			t.Errorf("failure %d: %s, cooling %s, %d in a row; want %s", i+1, info.State, got, info.Consecutive, want)
		}
		after := b.waits(ask("x", proxied), crawl.WaitProxyBusy)
		if after != want {
			t.Errorf("failure %d: wait %s, want %s", i+1, after, want)
		}
		b.pass(want)
	}
	b.lend("s", "h:80", crawl.ProxySuccess, "")
	if info := b.info("p01"); info.State != proxypool.StateActive || info.Consecutive != 0 || info.Failures != 3 || info.Successes != 1 {
		t.Errorf("after a success: %+v", info)
	}
}

func TestAProxyBackFromCoolingIsOnProbation(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.proxies(1, proxypool.ImportOptions{MaxConcurrency: 5})
	b.lend("f", "h:80", crawl.ProxyFailure, "")
	b.pass(30 * time.Second)
	b.granted(ask("probation", proxied))
	b.waits(ask("second", proxied), crawl.WaitProxyBusy)
	b.release("probation", crawl.ProxySuccess, "")
	b.granted(ask("second", proxied))
	b.granted(ask("third", proxied))
}

func TestLeasesOpenTogetherClimbOneRung(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(1, proxypool.ImportOptions{MaxConcurrency: 5})
		for i := range 5 {
			b.granted(ask(fmt.Sprint(i), proxied))
		}
		b.pass(5 * time.Millisecond)
		for i := range 5 {
			b.release(fmt.Sprint(i), crawl.ProxyFailure, "")
		}
		if info := b.info("p01"); info.Consecutive != 1 || info.Failures != 5 {
			t.Errorf("%d in a row of %d failures, want 1 of 5", info.Consecutive, info.Failures)
		}
	})
}

func TestTenFailuresInARowQuarantine(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.proxies(1, proxypool.ImportOptions{})
	for i := range 10 {
		b.lend(fmt.Sprint(i), "h:80", crawl.ProxyFailure, "")
		b.pass(31 * time.Minute)
	}
	if info := b.info("p01"); info.State != proxypool.StateQuarantined || info.Reason != "timeout" {
		t.Errorf("%s because of %q, want quarantined because of timeout", info.State, info.Reason)
	}
	b.waits(ask("x", proxied), crawl.WaitNoProxy)
}

func TestWrongCredentialsQuarantineAtOnce(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(2, proxypool.ImportOptions{})
		g := b.granted(ask("a", proxied))
		_, err := b.Release(b.ctx, proxypool.ReleaseRequest{LeaseID: "a", Verdict: crawl.Verdict{Proxy: crawl.ProxyDenied, Reason: crawl.ReasonProxyAuth}})
		b.ok(err)
		if info := b.info(g.Proxy.ID); info.State != proxypool.StateQuarantined || info.Reason != "proxy_auth" {
			t.Errorf("%s because of %q", info.State, info.Reason)
		}
		if other := b.granted(ask("b", proxied)); other.Proxy.ID == g.Proxy.ID {
			t.Error("the quarantined proxy was granted")
		}
	})
}

func TestUnclearFaultsBlameAProxyOnlyOverSeveralHosts(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(1, proxypool.ImportOptions{})
		for i := range 8 {
			b.lend(fmt.Sprint("one host", i), "a:80", crawl.ProxyUnclear, "")
		}
		if info := b.info("p01"); info.State != proxypool.StateActive || info.Unclear != 8 || info.Failures != 0 {
			t.Errorf("all on one host: %+v", info)
		}
		b.lend("fine elsewhere", "b:80", crawl.ProxySuccess, "")
		for i := range 3 {
			b.lend(fmt.Sprint("several", i), fmt.Sprintf("h%d:80", i), crawl.ProxyUnclear, "")
		}
		if info := b.info("p01"); info.State != proxypool.StateCooling || info.Failures != 1 {
			t.Errorf("three hosts in a row: %+v", info)
		}
	})
}

func TestNeutralTeachesNothing(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(1, proxypool.ImportOptions{})
		b.lend("a", "h:80", crawl.ProxyNeutral, "")
		if info := b.info("p01"); info.Successes+info.Failures+info.Unclear != 0 || info.State != proxypool.StateActive {
			t.Errorf("%+v", info)
		}
	})
}

func TestAThrottledPairIsSecondChoiceForAWhile(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(2, proxypool.ImportOptions{})
		g := b.granted(ask("a", proxied))
		b.release("a", crawl.ProxySuccess, crawl.PairThrottled)
		for i := range 4 {
			next := b.granted(ask(fmt.Sprint("n", i), proxied))
			if next.Proxy.ID == g.Proxy.ID {
				t.Errorf("the throttled pair was used while another proxy was free")
			}
			b.release(next.LeaseID, crawl.ProxySuccess, crawl.PairPassed)
		}
		other := "p01"
		if g.Proxy.ID == "p01" {
			other = "p02"
		}
		b.ok(b.Quarantine(b.ctx, other))
		b.granted(ask("no other", proxied)) // better than waiting 30 s
	})
}

func TestAPairBlockedTwiceInARowCools(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.numbered(2, proxypool.ImportOptions{})
	b.lend("before the other passed", "h:80", crawl.ProxyNeutral, crawl.PairBlocked, only(1))
	b.lend("and again", "h:80", crawl.ProxyNeutral, crawl.PairBlocked, only(1))
	b.lend("and yet again", "h:80", crawl.ProxyNeutral, crawl.PairBlocked, only(1)) // a host that blocks all
	b.lend("another", "h:80", crawl.ProxySuccess, crawl.PairPassed, only(2))
	b.ok(b.Quarantine(b.ctx, "p02"))
	b.lend("it passes", "h:80", crawl.ProxySuccess, crawl.PairPassed)
	b.lend("once", "h:80", crawl.ProxyNeutral, crawl.PairBlocked)
	b.lend("passed", "h:80", crawl.ProxySuccess, crawl.PairPassed)
	b.lend("again", "h:80", crawl.ProxyNeutral, crawl.PairBlocked)
	b.lend("twice", "h:80", crawl.ProxyNeutral, crawl.PairBlocked)
	if after := b.waits(ask("x", proxied), crawl.WaitProxyBusy); after != 10*time.Minute {
		t.Errorf("wait %s, want 10 min", after)
	}
	g := b.granted(ask("other host", proxied, at("other:80")))
	moved, err := b.Hop(b.ctx, "other host", g.Fence, "c", "h:80", proxypool.HostLimits{})
	b.ok(err)
	if moved.Wait == nil || moved.Wait.Why != crawl.WaitProxyBusy {
		t.Errorf("hop to a host that blocks this proxy: %s", show(moved))
	}
	b.release("other host", crawl.ProxySuccess, crawl.PairPassed)
	b.pass(10 * time.Minute)
	b.granted(ask("x", proxied))
	b.pass(time.Hour)
	if _, err := b.Reap(b.ctx); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Stats(b.ctx); err != nil || s.Pairs != 0 {
		t.Errorf("%d pairs kept, %v", s.Pairs, err)
	}
}
