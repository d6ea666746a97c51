package activities_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/activities"
	"holdfast/internal/crawl"
	"holdfast/internal/lab"
	"holdfast/proxypool"
	"holdfast/workflows"
)

func TestAFetchRunAgainAfterItsCommitAsksTheSiteOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		site := w.site(lab.SiteOptions{})
		in := input(w.get(site.URL("/ok/1")), 1)
		first := fetched(t, w.process("a"), in)
		again := fetched(t, w.process("b"), in)
		if first.Class != crawl.OK || first != again {
			t.Errorf("first %+v\nagain %+v", first, again)
		}
		if n := site.Total(); n != 1 {
			t.Errorf("the site was asked %d times", n)
		}
		must(t, doFinish(t, w.process("c"), finishing(in, again)))
		if after := fetched(t, w.process("d"), in); after != first {
			t.Errorf("after the release %+v", after)
		}
		w.noLeases()
	})
}

func TestACommittedOutcomeCountsWhateverStopsTheNextExecution(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*world, *activities.Activities) error{
		"the campaign is paused":   func(w *world, _ *activities.Activities) error { return w.frontier.Pause(w.t.Context(), w.run) },
		"the campaign is canceled": func(w *world, _ *activities.Activities) error { return w.frontier.Cancel(w.t.Context(), w.run) },
		"the worker drains":        func(_ *world, a *activities.Activities) error { a.DrainFetches(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			site := w.site(lab.SiteOptions{})
			in := input(w.get(site.URL("/ok/1")), 1)
			first := fetched(t, w.process("a"), in)
			b := w.process("b")
			must(t, stop(w, b))
			if again := fetched(t, b, in); again != first {
				t.Errorf("got %+v, want what was committed", again)
			}
		})
	}
}

// holding makes a proxypool that tells when a lease was granted and lets the test
// lose it.
type holding struct {
	activities.Leaser
	granted chan proxypool.Grant
}

func (h holding) Acquire(ctx context.Context, r proxypool.AcquireRequest) (proxypool.Acquired, error) {
	a, err := h.Leaser.Acquire(ctx, r)
	if a.Grant != nil {
		h.granted <- *a.Grant
	}
	return a, err
}

func TestASecondHolderSupersedesAndTheZombieIsRefused(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		site := w.site(lab.SiteOptions{})
		in := input(w.get(site.URL("/slow/1?ms=2000")), 1)
		grants := make(chan proxypool.Grant, 4)
		w.change = func(c *activities.Config) { c.Pool = holding{w.pool, grants} }
		a, b := w.process("a"), w.process("b")
		zombie := make(chan crawl.Outcome, 1)
		go func() {
			var out crawl.Outcome
			_ = execute(context.Background(), workflows.ActivityFetch, a, in, &out)
			zombie <- out
		}()
		old := <-grants
		second := fetched(t, b, in)
		if g := <-grants; g.Fence <= old.Fence || !g.Superseded {
			t.Errorf("second grant %+v after fence %d", g, old.Fence)
		}
		if out := <-zombie; out.Class != crawl.Deferred || out.Why != crawl.WaitSuperseded {
			t.Errorf("the zombie returned %+v", out)
		}
		if err := w.pool.Commit(t.Context(), in.LeaseID, old.Fence, []byte("{}")); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("the zombie's commit: %v", err)
		}
		if _, err := w.pool.Renew(t.Context(), in.LeaseID, old.Fence); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("the zombie's renewal: %v", err)
		}
		if second.Class != crawl.OK {
			t.Errorf("the successor returned %+v", second)
		}
	})
}

func TestAnUnsafeRequestIsNotSentTwice(t *testing.T) {
	t.Parallel()
	ambiguous := func(t *testing.T, in workflows.FetchInput, out crawl.Outcome) {
		t.Helper()
		if d := finishing(in, out).Decision; d.Action != crawl.Fail || d.Reason != crawl.ReasonAmbiguousUnsafe {
			t.Errorf("outcome %+v is decided as %+v", out, d)
		}
	}
	post := func(w *world, hold chan struct{}) (workflows.FetchInput, *atomic.Int64, chan struct{}) {
		var sent atomic.Int64
		arrived := make(chan struct{}, 8)
		srv := w.server(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or a client that leaves is not noticed
			sent.Add(1)
			arrived <- struct{}{}
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		})
		return input(w.start(crawl.Request{Method: "POST", URL: srv.URL + "/order", Body: "one"})[0], 1), &sent, arrived
	}
	start := func(a *activities.Activities, in workflows.FetchInput) chan crawl.Outcome {
		done := make(chan crawl.Outcome, 1)
		go func() {
			var out crawl.Outcome
			if err := execute(context.Background(), workflows.ActivityFetch, a, in, &out); err != nil {
				out = crawl.Outcome{Class: crawl.Class("error: " + err.Error())}
			}
			done <- out
		}()
		return done
	}

	t.Run("by a second execution of its pass", func(t *testing.T) {
		t.Parallel()
		everywhere(t, func(t *testing.T, w *world) {
			hold := make(chan struct{})
			in, sent, arrived := post(w, hold)
			first := start(w.process("a"), in)
			<-arrived
			ambiguous(t, in, fetched(t, w.process("b"), in))
			close(hold)
			<-first
			if sent.Load() != 1 {
				t.Errorf("sent %d times", sent.Load())
			}
		})
	})
	t.Run("when its worker hands it on", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		in, _, arrived := post(w, nil)
		a := w.process("a")
		done := start(a, in)
		<-arrived
		a.HandOn()
		ambiguous(t, in, <-done)
	})
	t.Run("when its campaign was paused after a crash in the exchange", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		hold := make(chan struct{})
		in, sent, arrived := post(w, hold)
		first := start(w.process("a"), in)
		<-arrived
		must(t, w.frontier.Pause(t.Context(), w.run))
		ambiguous(t, in, fetched(t, w.process("b"), in))
		close(hold)
		<-first
		if sent.Load() != 1 {
			t.Errorf("sent %d times", sent.Load())
		}
	})
	t.Run("when Redis was away at its commit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		w.change = func(c *activities.Config) { c.Pool = uncommitted{w.pool} }
		hold := make(chan struct{})
		close(hold)
		in, _, _ := post(w, hold)
		ambiguous(t, in, fetched(t, w.process("a"), in))
	})
}

// uncommitted is a pool whose Redis is away from the exchange's end on, and whose
// leases cannot be trusted for long.
type uncommitted struct{ activities.Leaser }

func (u uncommitted) Acquire(ctx context.Context, r proxypool.AcquireRequest) (proxypool.Acquired, error) {
	a, err := u.Leaser.Acquire(ctx, r)
	if a.Grant != nil {
		a.Grant.Deadline = time.Now().Add(1500 * time.Millisecond)
	}
	return a, err
}

func (uncommitted) Commit(context.Context, string, int64, []byte) error {
	return errors.New("redis is away")
}

func TestSettleSaysWhatBecameOfAPass(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		site := w.site(lab.SiteOptions{})
		task, a := w.get(site.URL("/ok/1")), w.process("a")
		settled := func(n int) crawl.Outcome {
			in := input(task, n)
			in.Settle = true
			return fetched(t, a, in)
		}
		if out := settled(1); out.Class != crawl.Canceled {
			t.Errorf("a lease that nobody had: %+v", out)
		}
		held := input(task, 2)
		got, err := w.pool.Acquire(t.Context(), proxypool.AcquireRequest{
			LeaseID: held.LeaseID, Holder: "other", Claimant: task.WorkflowID(), Host: task.Host, Selector: proxypool.Selector{Direct: true},
		})
		must(t, err)
		if out := settled(2); out.Class != crawl.Canceled {
			t.Errorf("a lease that is held: %+v", out)
		}
		if err := w.pool.Commit(t.Context(), held.LeaseID, got.Grant.Fence, []byte("{}")); !errors.Is(err, proxypool.ErrStale) {
			t.Errorf("the holder's commit after it: %v", err)
		}
		page := fetched(t, a, input(task, 3))
		if out := settled(3); out != page || out.Class != crawl.OK {
			t.Errorf("a lease with a page: %+v", out)
		}
		_, err = w.pool.Release(t.Context(), proxypool.ReleaseRequest{LeaseID: input(task, 4).LeaseID})
		must(t, err)
		if out := settled(4); out.Class != crawl.Ended {
			t.Errorf("a lease that had ended without an outcome: %+v", out)
		}
		if n := site.Total(); n != 1 {
			t.Errorf("the site was asked %d times", n)
		}
	})
}

func TestALeaseTakenOverThatHasToWaitGoesBackAtOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		site := w.site(lab.SiteOptions{})
		w.proxy(lab.ProxyOptions{})
		task := w.get(site.URL("/ok/1"))
		in := input(task, 1)
		// A worker that died holds it, and the host has asked for quiet meanwhile.
		_, err := w.pool.Acquire(t.Context(), proxypool.AcquireRequest{LeaseID: in.LeaseID, Holder: "dead", Claimant: task.WorkflowID(), Host: task.Host})
		must(t, err)
		must(t, w.pool.CloseHost(t.Context(), task.Host, time.Minute))
		a := w.process("a")
		out := fetched(t, a, in)
		if out.Class != crawl.Deferred || !out.Held {
			t.Fatalf("outcome %+v, want a deferral that holds a lease", out)
		}
		must(t, doFinish(t, a, finishing(in, out)))
		w.noLeases()
		if c := w.counts(); c.Waiting != 1 || c.Running != 0 {
			t.Errorf("counts %+v", c)
		}
	})
}
