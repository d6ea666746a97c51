package proxypool_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

const tick = 200 * time.Millisecond

func TestAHostsIntervalHoldsBetweenGrants(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.granted(ask("a", every(tick)))
		after := b.waits(ask("b", every(tick)), crawl.WaitHostTurn)
		if !b.near(after, tick) {
			t.Errorf("wait %s, want %s", after, tick)
		}
		b.granted(ask("elsewhere", at("other:80"), every(tick)))
		b.pass(after)
		b.granted(ask("b", every(tick)))
	})
}

func TestAWaitForAHostIsAReservation(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.granted(ask("a", every(tick)))
		first := b.waits(ask("b", every(tick)), crawl.WaitHostTurn)
		second := b.waits(ask("c", every(tick)), crawl.WaitHostTurn)
		if !b.near(second-first, tick) && !b.near(second, 2*tick) {
			t.Errorf("turns %s and %s from now, want one interval between them", first, second)
		}
		// Asking again, even under the next lease id, changes nothing.
		if again := b.waits(ask("b2", claimant("claimant of b"), every(tick)), crawl.WaitHostTurn); again > first {
			t.Errorf("asked again: %s, want no later than %s", again, first)
		}
		turns, err := b.Turns(b.ctx, []string{"h:80", "nowhere:80"})
		b.ok(err)
		if !b.near(turns[0], 3*tick) || turns[1] != 0 {
			t.Errorf("turns %v, want %s and now", turns, 3*tick)
		}
		b.pass(second)
		// c comes at its turn; b, late, is behind c's grant by the interval.
		b.granted(ask("c", every(tick)))
		late := b.waits(ask("b3", claimant("claimant of b"), every(tick)), crawl.WaitHostTurn)
		if !b.near(late, tick) {
			t.Errorf("b waits %s more, want %s", late, tick)
		}
		b.pass(late)
		b.granted(ask("b3", claimant("claimant of b"), every(tick)))
	})
}

func TestATurnNotTakenIsForgotten(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.granted(ask("a", every(tick)))
		b.waits(ask("b", every(tick)), crawl.WaitHostTurn)
		b.pass(tick + 301*time.Millisecond)
		b.granted(ask("c", every(tick)))
		// b comes too late: it gets a new turn, behind c.
		if after := b.waits(ask("b", every(tick)), crawl.WaitHostTurn); !b.near(after, tick) {
			t.Errorf("b waits %s, want %s", after, tick)
		}
		b.pass(tick + 301*time.Millisecond)
		if _, err := b.Reap(b.ctx); err != nil {
			t.Fatal(err)
		}
		if h := b.host("h:80"); h.Waiting != 0 || h.Turn != 0 {
			t.Errorf("host %+v, want nobody waiting and a turn now", h)
		}
	})
}

func TestTheTailOfTurnsThatLapsedHoldsNobodyUp(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.granted(ask("a", every(tick)))
		for i := range 20 {
			b.waits(ask(fmt.Sprint("gone", i), every(tick)), crawl.WaitHostTurn)
		}
		for i := range 20 {
			b.ends(ask(fmt.Sprint("gone", i), settle)) // the run was canceled
		}
		if after := b.waits(ask("b", every(tick)), crawl.WaitHostTurn); !b.near(after, tick) {
			t.Errorf("wait %s, want %s", after, tick)
		}
	})
}

func TestAHostsConcurrencyHolds(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.granted(ask("a", atMost(2)))
		b.granted(ask("b", atMost(2)))
		for i, want := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, time.Second} {
			after := b.waits(ask("c", atMost(2)), crawl.WaitHostBusy)
			if !b.near(after, want) {
				t.Errorf("wait %d is %s, want %s", i, after, want)
			}
			// Coming back too early shows the same turn.
			if again := b.waits(ask("c", atMost(2)), crawl.WaitHostBusy); again > after {
				t.Errorf("wait %d grew to %s", i, again)
			}
			b.pass(after)
		}
		b.release("a", crawl.ProxyNeutral, "")
		b.granted(ask("c", atMost(2)))
		b.waits(ask("d", atMost(2)), crawl.WaitHostBusy)
	})
}

func TestNothingIsGrantedBeforeAHostsRetryAfter(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		g := b.granted(ask("a"))
		b.ok(b.CloseHost(b.ctx, "h:80", time.Second))
		r, err := b.Renew(b.ctx, "a", g.Fence)
		b.ok(err)
		if !b.near(r.NotBefore, time.Second) {
			t.Errorf("renewal says closed for %s, want 1 s", r.NotBefore)
		}
		b.ok(b.CloseHost(b.ctx, "h:80", 100*time.Millisecond)) // never shortens
		after := b.waits(ask("b"), crawl.WaitNotBefore)
		if !b.near(after, time.Second) {
			t.Errorf("wait %s, want 1 s", after)
		}
		b.granted(ask("elsewhere", at("other:80")))
		b.pass(after)
		b.granted(ask("b"))
	})
}

func TestALaterNotBeforeShiftsAllTurnsAndKeepsTheirOrder(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.granted(ask("a", every(tick)))
		var before [5]time.Duration
		for i := range before {
			before[i] = b.waits(ask(fmt.Sprint("w", i), every(tick)), crawl.WaitHostTurn)
		}
		b.ok(b.CloseHost(b.ctx, "h:80", 2*time.Second))
		b.ok(b.CloseHost(b.ctx, "h:80", 30*time.Second))
		for i := range before {
			after := b.waits(ask(fmt.Sprint("w", i), every(tick)), crawl.WaitNotBefore)
			if want := before[i] + 30*time.Second; !b.near(after, want) {
				t.Errorf("turn %d: %s from now, want %s", i, after, want)
			}
		}
		if after := b.waits(ask("new", every(tick)), crawl.WaitNotBefore); !b.near(after, 30*time.Second+6*tick) {
			t.Errorf("a newcomer waits %s, want its turn after the five", after)
		}
		b.pass(30*time.Second + tick)
		b.granted(ask("w0", every(tick)))
		b.waits(ask("w1", every(tick)), crawl.WaitHostTurn)
		b.pass(tick)
		b.granted(ask("w1", every(tick)))
	})
}

func TestALateClaimantDoesNotUndercutTheInterval(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.granted(ask("a", every(tick)))
	var waits []time.Duration
	for i := range 10 {
		waits = append(waits, b.waits(ask(fmt.Sprint(i), every(tick)), crawl.WaitHostTurn))
	}
	b.pass(waits[9]) // all of them are late, at once
	type due struct {
		name string
		at   time.Time
	}
	var queue []due
	for i := range 10 {
		queue = append(queue, due{fmt.Sprint(i), b.now})
	}
	var grants []time.Time
	calls := 0
	for len(queue) > 0 {
		slices.SortStableFunc(queue, func(x, y due) int { return x.at.Compare(y.at) })
		d := queue[0]
		queue = queue[1:]
		b.pass(d.at.Sub(b.now))
		a, err := b.Acquire(b.ctx, ask(d.name, every(tick)))
		b.ok(err)
		calls++
		if a.Grant != nil {
			grants = append(grants, b.now)
			continue
		}
		queue = append(queue, due{d.name, b.now.Add(a.Wait.After)})
	}
	for i := 1; i < len(grants); i++ {
		if d := grants[i].Sub(grants[i-1]); d != tick {
			t.Errorf("grant %d came %s after the one before, want %s", i, d, tick)
		}
	}
	if calls > 20 {
		t.Errorf("%d calls for 10 late claimants, want each to come back once", calls)
	}
}

func TestWantOfAProxyChargesTheHostNothing(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(1, proxypool.ImportOptions{})
		b.granted(ask("holds the proxy", proxied, at("other:80")))
		b.waits(ask("a", proxied, every(tick)), crawl.WaitProxyBusy)
		b.granted(ask("direct", every(tick))) // the turn was still there
		b.waits(ask("a", proxied, every(tick)), crawl.WaitHostTurn)
		b.pass(tick)
		after := b.waits(ask("a", proxied, every(tick)), crawl.WaitProxyBusy) // keeps its turn
		b.release("holds the proxy", crawl.ProxyNeutral, "")
		b.pass(after)
		b.granted(ask("a", proxied, every(tick)))
	})
}

func TestAHopMovesTheLeaseAndTakesATurn(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		ids := b.proxies(1, proxypool.ImportOptions{})
		limits := proxypool.HostLimits{Interval: tick, Concurrency: 1}
		g := b.granted(ask("a", proxied, atMost(1)))
		for range 2 { // the second is a lost reply's repetition
			moved, err := b.Hop(b.ctx, "a", g.Fence, "claimant of a", "next:80", limits)
			b.ok(err)
			if moved.Grant == nil || moved.Grant.Host != "next:80" || moved.Grant.Fence != g.Fence || moved.Grant.Proxy.ID != ids[0] {
				t.Fatalf("hop: %s", show(moved))
			}
		}
		if from, to := b.host("h:80"), b.host("next:80"); from.Open != 0 || to.Open != 1 {
			t.Errorf("open %d and %d, want 0 and 1", from.Open, to.Open)
		}
		b.granted(ask("b", at("h:80"), atMost(1)))

		b.granted(ask("c", at("far:80"), every(tick)))
		moved, err := b.Hop(b.ctx, "a", g.Fence, "claimant of a", "far:80", limits)
		b.ok(err)
		if moved.Wait == nil || !b.near(moved.Wait.After, tick) {
			t.Fatalf("hop to a host whose turn is later: %s", show(moved))
		}
		if h := b.host("next:80"); h.Open != 1 {
			t.Errorf("a hop that waits moved the lease: %d open", h.Open)
		}
		b.release("c", crawl.ProxyNeutral, "")
		b.pass(moved.Wait.After)
		moved, err = b.Hop(b.ctx, "a", g.Fence, "claimant of a", "far:80", limits)
		b.ok(err)
		if moved.Grant == nil {
			t.Fatalf("hop at its turn: %s", show(moved))
		}
		b.release("a", crawl.ProxySuccess, crawl.PairPassed)
		for _, host := range []string{"next:80", "far:80"} {
			if h := b.host(host); h.Open != 0 {
				t.Errorf("%s has %d open after the release", host, h.Open)
			}
		}
	})
}

func TestHostsThatNobodyAsksAreDropped(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.granted(ask("a", every(time.Second)))
	b.release("a", crawl.ProxyNeutral, "")
	b.pass(2 * time.Hour)
	for range 2 {
		if _, err := b.Reap(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.Stats(b.ctx)
	b.ok(err)
	if s.Hosts != 0 {
		t.Errorf("%d hosts kept", s.Hosts)
	}
}
