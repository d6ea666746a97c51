package e2e_test

import (
	"fmt"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/lab"
)

// urlRun is one URL of a run and what became of it.
type urlRun struct {
	s    *stack
	run  frontier.RunInfo
	task crawl.Task
	url  string
}

func (s *stack) urlRun(run frontier.RunInfo, url string) urlRun {
	s.t.Helper()
	e, err := frontier.NewEntry(crawl.Request{URL: url}, 0, "")
	s.ok(err)
	return urlRun{s: s, run: run, url: url, task: crawl.Task{Campaign: run.Campaign, Run: run.Run, ID: e.ID}}
}

func (u urlRun) cancel() {
	u.s.t.Helper()
	u.s.ok(u.s.temporal.CancelWorkflow(u.s.ctx, u.task.WorkflowID(), ""))
}

func (u urlRun) status() enums.WorkflowExecutionStatus {
	u.s.t.Helper()
	d, err := u.s.temporal.DescribeWorkflowExecution(u.s.ctx, u.task.WorkflowID(), "")
	u.s.ok(err)
	return d.GetWorkflowExecutionInfo().GetStatus()
}

// closed waits for the workflow's end.
func (u urlRun) closed() enums.WorkflowExecutionStatus {
	u.s.t.Helper()
	u.s.until(u.url+" closes", func() bool { return u.status() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING })
	return u.status()
}

// agree fails the test unless run, record and frontier tell the same: Completed
// with a page, or Canceled without one.
func (u urlRun) agree() crawl.Record {
	u.s.t.Helper()
	status := u.closed()
	r, ok := u.s.records(u.run)[u.url]
	if !ok {
		u.s.t.Errorf("%s: %s, and it has no record", u.url, status)
		return r
	}
	want := map[enums.WorkflowExecutionStatus]crawl.State{
		enums.WORKFLOW_EXECUTION_STATUS_COMPLETED: crawl.Completed,
		enums.WORKFLOW_EXECUTION_STATUS_CANCELED:  crawl.StateCanceled,
		enums.WORKFLOW_EXECUTION_STATUS_FAILED:    crawl.Failed,
	}[status]
	if r.State != want {
		u.s.t.Errorf("%s: the run is %s, its record says %s", u.url, status, r.State)
	}
	if (r.Body != nil) != (r.State == crawl.Completed) {
		u.s.t.Errorf("%s: %s with body %+v", u.url, r.State, r.Body)
	}
	info, err := u.s.frontier.URL(u.s.ctx, u.run.Name(), u.task.ID)
	u.s.ok(err)
	if info.State != r.State {
		u.s.t.Errorf("%s: the frontier says %s, the record %s", u.url, info.State, r.State)
	}
	if r.RunID == "" {
		u.s.t.Errorf("%s: the record names no run", u.url)
	}
	return r
}

// failedTasks counts the workflow tasks that the server refused for a cause.
func (u urlRun) failedTasks(cause enums.WorkflowTaskFailedCause) int {
	u.s.t.Helper()
	n := 0
	it := u.s.temporal.GetWorkflowHistory(u.s.ctx, u.task.WorkflowID(), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		u.s.ok(err)
		if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil && a.GetCause() == cause {
			n++
		}
	}
	return n
}

// asked waits until the site was asked for a path and returns when that was.
func (s *stack) asked(site *lab.Site, path string) time.Time {
	s.t.Helper()
	var at time.Time
	s.until(path+" is asked", func() bool {
		for _, v := range site.Visits() {
			if v.Path == path {
				at = v.At
				return true
			}
		}
		return false
	})
	return at
}

// TestACancelInAFetchClosesRunAndRecordAlike cancels 2 s into fetches of 5 s and
// of 20 s: whether the page still comes may differ, run and record may not.
func TestACancelInAFetchClosesRunAndRecordAlike(t *testing.T) {
	t.Parallel()
	s := newStack(t, 3*time.Minute)
	s.worker("w1")
	s.proxies(2, 8)
	site := s.site(lab.SiteOptions{})
	paths := []string{"/slow/5?ms=5000", "/slow/20?ms=20000"}
	run := s.start(spec("cut"), urlsOf(len(paths), func(i int) string { return site.URL(paths[i]) }))
	for _, p := range paths {
		at := s.asked(site, p)
		<-time.After(time.Until(at.Add(2 * time.Second)))
		s.urlRun(run, site.URL(p)).cancel()
	}
	canceled := time.Now()
	for _, p := range paths {
		r := s.urlRun(run, site.URL(p)).agree()
		t.Logf("%s: %s %v after the cancel, attempts %+v", p, r.State, time.Since(canceled).Round(100*time.Millisecond), r.Attempts)
	}
	if r := s.records(run)[site.URL(paths[1])]; r.State != crawl.StateCanceled {
		t.Errorf("the fetch of 20 s ended as %s: the cancel did not reach it", r.State)
	}
	if took := time.Since(canceled); took > 15*time.Second {
		t.Errorf("closed %v after the cancel, want within 10 s", took)
	}
	counts := s.finished(run)
	if counts.Completed+counts.Canceled != 2 || counts.Done() != counts.Accepted {
		t.Errorf("counts %+v", counts)
	}
	s.noLeases()
	for _, p := range paths {
		if n := site.Count(p); n != 1 {
			t.Errorf("%s was asked %d times", p, n)
		}
	}
}

// TestACancelInATaskThatHasItsOutcomeKeepsIt lets the cancel land while the
// workflow task is open and the pass has ended: the server refuses the closing
// command and drops the task's markers. What is run again must learn how it ended.
func TestACancelInATaskThatHasItsOutcomeKeepsIt(t *testing.T) {
	inFull(t)
	t.Parallel()
	s := newStack(t, 3*time.Minute)
	s.proxies(2, 8)
	// Scripts that Redis knows already run at their first call.
	first := s.worker("first")
	known := s.site(lab.SiteOptions{})
	s.finished(s.start(spec("known"), []string{known.URL("/ok/0"), known.URL("/missing/0")}))
	if code := first.stop(time.Minute); code != 0 {
		t.Errorf("the first worker ended with %d", code)
	}
	for i, c := range []struct {
		name, word string // the word is in the command that the cancel follows
		answers    bool
		path       string
		flag       bool // the campaign's flag ends the fetch before the cancel comes
		dies       bool // the worker dies after that, and another goes on
		want       enums.WorkflowExecutionStatus
	}{
		{"before the record is written", `"class":"ok"`, false, "/ok/1", false, false, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED},
		{"after record, release and ack", "pages-", true, "/ok/2", false, false, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED},
		{"after a failure's record", "failures-", true, "/missing/3", false, false, enums.WORKFLOW_EXECUTION_STATUS_FAILED},
		{"after a canceled one's record", "failures-", true, "/slow/4?ms=25000", true, false, enums.WORKFLOW_EXECUTION_STATUS_CANCELED},
		{"after all of it, in a worker that dies", "pages-", true, "/ok/5", false, true, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.of(t)
			g := newGate(t, s.at.Redis, c.word, c.answers)
			w := s.worker(fmt.Sprintf("w%d", i), "--redis", g.URL())
			site := s.site(lab.SiteOptions{})
			run := s.start(spec(fmt.Sprintf("kept-%d", i)), []string{site.URL(c.path)})
			s.asked(site, c.path)
			if c.flag {
				s.ok(s.frontier.Cancel(s.ctx, run.Name()))
			}
			select {
			case <-g.met:
			case <-time.After(30 * time.Second):
				t.Fatalf("no command held %q", c.word)
			}
			u := s.urlRun(run, site.URL(c.path))
			u.cancel()
			if c.dies {
				w.kill()
				w = s.worker("heir")
			}
			g.letThrough()
			u.agree()
			if got := u.status(); got != c.want {
				t.Errorf("the run is %s, want %s: its record was written", got, c.want)
			}
			if n := u.failedTasks(enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND); n < 1 && !c.dies {
				t.Error("no task was refused: the cancel did not land in the open one")
			}
			if n := site.Count(c.path); n != 1 {
				t.Errorf("the site was asked %d times", n)
			}
			s.until("the run ends", func() bool {
				info, err := s.frontier.Run(s.ctx, run.Name())
				s.ok(err)
				return !info.Ended.IsZero()
			})
			s.noLeases()
			if code := w.stop(time.Minute); code != 0 {
				t.Errorf("the worker ended with %d", code)
			}
		})
	}
}

// TestACancelInARetryAfterWaitAsksNobody cancels a URL that sleeps for an hour.
func TestACancelInARetryAfterWaitAsksNobody(t *testing.T) {
	t.Parallel()
	s := newStack(t, 2*time.Minute)
	s.worker("w1")
	s.proxies(1, 8)
	site := s.site(lab.SiteOptions{})
	path := "/throttled/1?after=3600"
	run := s.start(spec("asleep"), []string{site.URL(path)})
	s.until("the URL waits", func() bool {
		c, err := s.frontier.Counts(s.ctx, run.Name())
		s.ok(err)
		return c.Waiting == 1
	})
	s.noLeases()
	u := s.urlRun(run, site.URL(path))
	u.cancel()
	canceled := time.Now()
	r := u.agree()
	if r.State != crawl.StateCanceled || len(r.Attempts) != 1 || r.Attempts[0].Status != 429 {
		t.Errorf("record %s with attempts %+v", r.State, r.Attempts)
	}
	if took := time.Since(canceled); took > 10*time.Second {
		t.Errorf("closed %v after the cancel", took)
	}
	if c := s.finished(run); c.Canceled != 1 || c.Waiting != 0 {
		t.Errorf("counts %+v", c)
	}
	s.noLeases()
	if site.Total() != 1 {
		t.Errorf("the site was asked %d times", site.Total())
	}
}

// TestACanceledCampaignLeavesNothingBehind cancels by the command, with pages
// done, fetches under way, URLs that sleep and URLs that were never asked.
func TestACanceledCampaignLeavesNothingBehind(t *testing.T) {
	inFull(t)
	t.Parallel()
	const done, running, queued, sleeping = 20, 40, 100, 3
	s := newStack(t, 3*time.Minute)
	s.worker("w1")
	s.worker("w2")
	s.proxies(4, 16)
	site, asleep := s.site(lab.SiteOptions{}), s.site(lab.SiteOptions{})
	var urls []string
	for i := range sleeping {
		urls = append(urls, asleep.URL(fmt.Sprintf("/throttled/%d?after=3600", i)))
	}
	for i := range done {
		urls = append(urls, site.URL(fmt.Sprintf("/ok/%d", i)))
	}
	for i := range running + queued {
		urls = append(urls, site.URL(fmt.Sprintf("/slow/%d?ms=25000", i)))
	}
	c := spec("stopped")
	c.Concurrency = running
	run := s.start(c, urls)
	s.until("the fetches are under way", func() bool {
		n, err := s.frontier.Counts(s.ctx, run.Name())
		s.ok(err)
		return n.Completed == done && n.Running == running && n.Waiting > 0 && site.Total() == done+running
	})
	began := time.Now()
	out, errs, code := runs(t, bin.starter, s.flags("campaign", "cancel", "stopped", "--yes")...)
	if code != 0 {
		t.Fatalf("campaign cancel: exit code %d\n%s%s", code, out, errs)
	}
	var info frontier.RunInfo
	s.until("the run is canceled", func() bool {
		var err error
		info, err = s.frontier.Run(s.ctx, run.Name())
		s.ok(err)
		return info.State == frontier.RunCanceled
	})
	took := time.Since(began)
	t.Logf("canceled in %v: %+v", took.Round(100*time.Millisecond), info.Counts)
	if took > 25*time.Second { // 1 to 3 s where the machine has nothing else to do
		t.Errorf("canceled after %v, want within 10 s on a quiet machine", took)
	}
	s.until("the campaign's workflow closes", func() bool {
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, run.Name(), "")
		s.ok(err)
		status := d.GetWorkflowExecutionInfo().GetStatus()
		if status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING && status != enums.WORKFLOW_EXECUTION_STATUS_CANCELED {
			t.Errorf("the campaign's workflow is %s, want canceled", status)
		}
		return status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	})
	s.noLeases()
	n := info.Counts
	if n.Accepted != int64(len(urls)) || n.Done() != n.Accepted || n.Completed != done || n.Failed != 0 {
		t.Errorf("counts %+v", n)
	}
	records := s.records(run)
	states := map[crawl.State]int64{}
	for _, url := range urls {
		r, ok := records[url]
		if !ok {
			t.Errorf("%s has no record", url)
			continue
		}
		states[r.State]++
		if r.State == crawl.Skipped {
			if len(r.Attempts) > 0 || r.Reason == nil || *r.Reason != crawl.ReasonSkippedCanceled {
				t.Errorf("%s was skipped after %d attempts, reason %v", url, len(r.Attempts), r.Reason)
			}
			continue
		}
		s.urlRun(run, url).agree()
	}
	if len(records) != len(urls) || states[crawl.Completed] != n.Completed || states[crawl.StateCanceled] != n.Canceled || states[crawl.Skipped] != n.Skipped {
		t.Errorf("%d records of %d URLs, by state %v; counts %+v", len(records), len(urls), states, n)
	}
	if n.Canceled < running || n.Skipped < queued {
		t.Errorf("counts %+v: %d ran and %d were queued", n, running, queued)
	}
	// Nothing is asked any more.
	total := site.Total()
	if total != done+running {
		t.Errorf("the site was asked %d times, want %d", total, done+running)
	}
}

// flags are arguments of a program, with those that point it at the stack.
func (s *stack) flags(args ...string) []string {
	return append(args, "--address", s.at.Temporal, "--namespace", s.at.Namespace, "--redis", s.at.Redis)
}
