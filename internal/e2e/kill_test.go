package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/lab"
)

// leasesBackWithin is a lease's lifetime and the reaper's period.
const leasesBackWithin = 50 * time.Second

// leasesComeBack waits until the pool has no lease, for as long as a lease that
// nobody renews may take.
func (s *stack) leasesComeBack() {
	s.t.Helper()
	start := time.Now()
	poll(s.t, leasesBackWithin, "all leases are back", func() bool {
		n, err := s.pool.OpenLeases(s.ctx)
		s.ok(err)
		return n == 0
	})
	s.t.Logf("no lease left %v after the end", time.Since(start).Round(time.Millisecond))
}

// noneOpen fails the test if the frontier has a claim left.
func (s *stack) noneOpen(run frontier.RunInfo) {
	s.t.Helper()
	claims, _, err := s.frontier.OpenClaims(s.ctx, run.Name(), "", 100)
	s.ok(err)
	if len(claims) > 0 {
		s.t.Errorf("claims are left open: %+v", claims)
	}
}

// ended waits until so many of a run's URLs have ended.
func (s *stack) ended(run frontier.RunInfo, n int64) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d URLs of %s have ended", n, run.Name()), func() bool {
		c, err := s.frontier.Counts(s.ctx, run.Name())
		s.ok(err)
		return c.Done() >= n
	})
}

// TestWorkersKilledInMidFetchLoseNothing kills one of two workers again and
// again, at moments that a seed draws.
func TestWorkersKilledInMidFetchLoseNothing(t *testing.T) {
	inFull(t)
	t.Parallel()
	const n, took, seed = 240, 300 * time.Millisecond, 41
	s := newStack(t, 4*time.Minute)
	s.proxies(4, 3)
	site := s.site(lab.SiteOptions{})
	random := rand.New(rand.NewPCG(seed, 0))
	workers := []*process{s.worker("w0"), s.worker("w1")}
	run := s.start(spec("kills"), urlsOf(n, func(i int) string {
		return site.URL(fmt.Sprintf("/slow/%d?ms=%d", i, 50+random.IntN(250)))
	}))
	var kills []time.Time
	for i, share := range []int64{n / 8, n / 3, n / 2, 2 * n / 3} {
		s.ended(run, share)
		select {
		case <-time.After(time.Duration(random.IntN(400)) * time.Millisecond):
		case <-s.ctx.Done():
		}
		victim := random.IntN(2)
		workers[victim].kill()
		kills = append(kills, time.Now())
		workers[victim] = s.worker(fmt.Sprintf("w%d-%d", victim, i))
	}
	if c := s.finished(run); c.Completed != n {
		t.Errorf("counts %+v, want %d completed", c, n)
	}
	s.leasesComeBack()
	s.noneOpen(run)
	records := s.records(run)
	wantAllCompleted(t, records, n)
	noneRepeated(t, site.Visits(), records, kills, took)
	for _, w := range workers {
		if code := w.stop(60 * time.Second); code != 0 {
			t.Errorf("%s ends with %d", w.name, code)
		}
	}
}

// TestAWorkerThatIsToldToStopHandsOn: SIGTERM in the middle of fetches that last
// longer than its grace.
func TestAWorkerThatIsToldToStopHandsOn(t *testing.T) {
	inFull(t)
	t.Parallel()
	const n, grace = 24, 9 * time.Second
	s := newStack(t, 4*time.Minute)
	s.proxies(4, 8)
	site := s.site(lab.SiteOptions{})
	leaving, staying := s.worker("leaving", "--grace", grace.String()), s.worker("staying")
	// Half of the pages outlast what the grace leaves them, half do not.
	run := s.start(spec("stop"), urlsOf(n, func(i int) string {
		return site.URL(fmt.Sprintf("/slow/%d?ms=%d", i, []int{1500, 12000}[i%2]))
	}))
	s.until("every page is asked", func() bool { return site.Total() >= n })
	told := time.Now()
	if code := leaving.stop(grace + 5*time.Second); code != 0 {
		t.Errorf("exit %d after SIGTERM", code)
	}
	took := time.Since(told)
	t.Logf("stopped after %v", took.Round(time.Millisecond))
	if c := s.finished(run); c.Completed != n {
		t.Errorf("counts %+v, want %d completed", c, n)
	}
	s.noLeases()
	s.noneOpen(run)
	records := s.records(run)
	wantAllCompleted(t, records, n)
	handedOn := 0
	for u, r := range records {
		if len(r.Attempts) != 1 {
			t.Errorf("%s needed %d attempts; handing on spends none", u, len(r.Attempts))
		}
		if site.Count(pathOf(u)) > 1 {
			handedOn++
		}
	}
	if handedOn == 0 {
		t.Error("no fetch was handed on: the worker had none of the long ones")
	}
	t.Logf("%d fetches were handed on", handedOn)
	noneRepeated(t, site.Visits(), records, []time.Time{told.Add(took)}, took+time.Second)
	if code := staying.stop(60 * time.Second); code != 0 {
		t.Errorf("the other worker ends with %d", code)
	}
}

// TestEverythingKilledAtOnceGoesOn: services and workers die together, and start
// again on the same directory.
func TestEverythingKilledAtOnceGoesOn(t *testing.T) {
	inFull(t)
	t.Parallel()
	const n, took = 160, 200 * time.Millisecond
	s := newStack(t, 4*time.Minute)
	s.proxies(4, 3)
	site := s.site(lab.SiteOptions{})
	workers := []*process{s.worker("w0"), s.worker("w1")}
	run := s.start(spec("all"), urlsOf(n, func(i int) string { return site.URL(fmt.Sprintf("/slow/%d?ms=200", i)) }))
	s.ended(run, n/3)
	for _, p := range append(workers, s.services) {
		_ = p.cmd.Process.Signal(os.Kill)
	}
	for _, p := range append(workers, s.services) {
		<-p.done
	}
	killed := time.Now()
	before := readRecords(t, s.resultsDir(), run.Campaign, run.Run)

	s.services, s.at = up(t, s.dir, "--no-worker")
	s.connect()
	s.worker("w2")
	s.until("a further URL is done", func() bool {
		c, err := s.frontier.Counts(s.ctx, run.Name())
		s.ok(err)
		return c.Done() > int64(len(before))
	})
	t.Logf("killed with %d of %d records; the first further URL was done %v later", len(before), n, time.Since(killed).Round(10*time.Millisecond))
	if c := s.finished(run); c.Completed != n {
		t.Errorf("counts %+v, want %d completed", c, n)
	}
	s.leasesComeBack()
	s.noneOpen(run)
	records := s.records(run)
	wantAllCompleted(t, records, n)
	noneRepeated(t, site.Visits(), records, []time.Time{killed}, took)
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	info, err := s.frontier.Run(ctx, run.Name())
	s.ok(err)
	if info.Counts.Open() != 0 {
		t.Errorf("counts %+v", info.Counts)
	}
}

// TestATerminatedURLIsBuriedAndItsLeaseComesBack: terminating runs no code of
// ours, so the sweeper ends the URL and the reaper takes the lease.
func TestATerminatedURLIsBuriedAndItsLeaseComesBack(t *testing.T) {
	inFull(t)
	t.Parallel()
	s := newStack(t, 4*time.Minute)
	s.proxies(2, 4)
	site := s.site(lab.SiteOptions{})
	w := s.worker("w1")
	victim := site.URL("/slow/victim?ms=8000")
	run := s.start(spec("buried"), []string{site.URL("/ok/1"), victim, site.URL("/ok/2")})
	s.until("the page is asked", func() bool { return site.Count("/slow/victim?ms=8000") == 1 })
	entry, err := frontier.NewEntry(crawl.Request{URL: victim}, 0, "")
	s.ok(err)
	task := crawl.Task{Campaign: run.Campaign, Run: run.Run, ID: entry.ID}
	s.ok(s.temporal.TerminateWorkflow(s.ctx, task.WorkflowID(), "", "the test's doing"))
	terminated := time.Now()
	if c := s.finished(run); c.Completed != 2 || c.Failed != 1 {
		t.Errorf("counts %+v, want 2 completed and 1 failed", c)
	}
	t.Logf("the run ended %v after the termination", time.Since(terminated).Round(time.Millisecond))
	s.leasesComeBack()
	s.noneOpen(run)
	records := s.records(run)
	if len(records) != 3 {
		t.Errorf("%d records, want 3", len(records))
	}
	if r := records[victim]; r.State != crawl.Failed || r.Reason == nil || *r.Reason != crawl.ReasonTerminated {
		t.Errorf("the terminated URL's record: %+v", r)
	}
	if n := site.Count("/slow/victim?ms=8000"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	if code := w.stop(60 * time.Second); code != 0 {
		t.Errorf("the worker ends with %d", code)
	}
}
