package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/results"
	"holdfast/starter/cli"
	"holdfast/workflows"
)

const local = "http://127.0.0.1:8080/a"

// worker ends a run's URLs as a worker would: bodies and records in a sink of
// its own, then the ack. It is registered as the deployment's.
type worker struct {
	b    *bench
	sink *results.Local
}

func (b *bench) worker() *worker {
	b.t.Helper()
	sink, err := results.OpenLocal(b.t.TempDir(), results.LocalOptions{Worker: "w1"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = sink.Close() })
	if _, err := b.frontier().RegisterSink(b.t.Context(), sink.Location().String()); err != nil {
		b.t.Fatal(err)
	}
	return &worker{b, sink}
}

func (w *worker) end(campaign string, run int, state crawl.State, reason crawl.Reason, body string) func(frontier.Claim) frontier.Ack {
	return func(c frontier.Claim) frontier.Ack {
		w.b.t.Helper()
		ctx := w.b.t.Context()
		r := crawl.Record{
			Schema: 1, Campaign: campaign, Run: run, ID: c.ID, URL: c.URL, Method: "GET", State: state, Status: 200,
			Attempts: []crawl.Attempt{{N: 1, Worker: "w1", Proxy: "p3", Class: crawl.OK, Status: 200, TookMS: 205}},
			Accepted: "2026-12-01T10:00:00.000Z", Ended: "2026-12-01T10:00:01.000Z",
		}
		if reason != "" {
			r.Reason = &reason
		}
		if body != "" {
			out, err := w.sink.NewBody(ctx, campaign, run)
			if err != nil {
				w.b.t.Fatal(err)
			}
			if _, err := out.Write([]byte(body)); err != nil {
				w.b.t.Fatal(err)
			}
			ref, sum, err := out.Commit()
			if err != nil {
				w.b.t.Fatal(err)
			}
			r.Body, r.SHA256, r.Bytes = &ref, sum, int64(len(body))
		}
		file, err := w.sink.Append(ctx, r)
		if err != nil {
			w.b.t.Fatal(err)
		}
		return frontier.Ack{ID: c.ID, State: state, Reason: reason, File: file}
	}
}

// scraping runs a scrape while work ends its URLs.
func (b *bench) scraping(run string, end func(frontier.Claim) frontier.Ack, args ...string) answer {
	b.t.Helper()
	got := make(chan answer)
	go func() { got <- b.run(append([]string{"scrape"}, args...)...) }()
	eventually(b.t, run+" is loaded", func() bool {
		info, err := b.frontier().Run(b.t.Context(), run)
		return err == nil && info.Sealed
	})
	b.work(run, end)
	return <-got
}

func TestScrapePrintsTheRecordOfTheSink(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	w := b.worker()
	a := b.scraping("adhoc-1", w.end("adhoc", 1, crawl.Completed, "", "hello"), local, "--direct", "--output", "json").wants(t, 0)
	var r crawl.Record
	if err := json.Unmarshal([]byte(a.stdout), &r); err != nil || r.URL != local || r.Body == nil || r.Run != 1 {
		t.Errorf("%v, %+v in %q", err, r, a.stdout)
	}
	a = b.scraping("adhoc-2", w.end("adhoc", 2, crawl.Completed, "", "<p>bytes as fetched</p>\x00"), local, "--direct", "--body").wants(t, 0)
	if a.stdout != "<p>bytes as fetched</p>\x00" {
		t.Errorf("body %q", a.stdout)
	}
	b.scraping("adhoc-3", w.end("adhoc", 3, crawl.Completed, "", "x"), local, "--direct").
		wants(t, 0).says(t, local, "completed 200", "attempt 1: 200 ok via p3 by w1 in 205 ms", "run-0003/bodies/")
	if b.fake.start("adhoc-3") == nil {
		t.Error("a scrape started no campaign workflow")
	}
}

func TestScrapeExits1WhereAURLFails(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	w := b.worker()
	b.scraping("adhoc-1", w.end("adhoc", 1, crawl.Failed, "http_404", ""), local, "--direct").
		wants(t, 1).says(t, "failed (http_404)", "1 of 1 URLs did not succeed", "explain "+local)
	a := b.scraping("adhoc-2", w.end("adhoc", 2, crawl.Failed, "http_404", ""), local, "--direct", "--body").wants(t, 1)
	if a.stdout != "" {
		t.Errorf("a failed page printed %q", a.stdout)
	}
}

func TestScrapeReadsTheHistoryWhereTheSinkIsElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	if _, err := b.frontier().RegisterSink(t.Context(), "file:///nowhere/on/this/machine"); err != nil {
		t.Fatal(err)
	}
	e, err := frontier.NewEntry(crawl.Request{URL: local}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	task := crawl.Task{Campaign: "adhoc", Run: 1, ID: e.ID, URL: local}
	s := newStory(t, workflows.URLInput{Task: task})
	s.local(workflows.ActivityFetch, crawl.Outcome{Class: crawl.OK, Status: 200, Worker: "w7", Bytes: 5, SHA256: "ab"}, nil)
	s.completed(workflows.URLResult{Status: 200})
	b.fake.histories[task.WorkflowID()] = s.events
	a := b.scraping("adhoc-1", completed, local, "--direct", "--output", "json").wants(t, 0)
	var r crawl.Record
	if err := json.Unmarshal([]byte(a.stdout), &r); err != nil || r.Status != 200 || r.SHA256 != "ab" || len(r.Attempts) != 1 || r.Attempts[0].Worker != "w7" {
		t.Errorf("%v, %+v", err, r)
	}
	b.run("results", "path", "adhoc").wants(t, 1).says(t, "file:///nowhere/on/this/machine", "not on this machine")
}

func TestScrapeDetachedPrintsIdsAndLaterOnesJoinTheOpenRun(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	a := b.run("scrape", local, "--direct", "--detach", "--output", "json").wants(t, 0)
	var d cli.Detached
	if err := json.Unmarshal([]byte(a.stdout), &d); err != nil || d.WorkflowID != "adhoc-1/"+d.ID || len(d.ID) != 32 {
		t.Errorf("%v, %+v", err, d)
	}
	b.run("scrape", "http://127.0.0.1:8080/b", "--direct", "--detach").wants(t, 0).says(t, "adhoc-1/")
	if v := b.status("adhoc"); v.Accepted != 2 || v.Run != 1 {
		t.Errorf("%+v", v)
	}
	b.run("scrape", local, "--direct", "--detach", "--delay", "3s").wants(t, 2).says(t, "open run, adhoc-1")
}

func TestScrapeInterruptedNamesTheCommandThatGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.fake.pollers = 0
	b.interrupted(func(printed string) bool { return strings.Contains(printed, "no worker") }, "scrape", local, "--direct").wants(t, 130).
		says(t, "no worker asks for tasks", "state kept", "go on with: starter campaign watch adhoc-1")
}

func TestResultsShowTailAndPathReadTheSink(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	w := b.worker()
	b.run("campaign", "start", "--name", "docs", "--urls", b.file("urls.txt", urlList(3)), "--direct").wants(t, 0)
	b.run("results", "show", "docs", "http://127.0.0.1:8080/page/0").wants(t, 1).says(t, "is queued")
	b.work("docs-1", w.end("docs", 1, crawl.Completed, "", "page body"))
	if a := b.run("results", "show", "docs", "http://127.0.0.1:8080/page/0").wants(t, 0); a.stdout != "page body" {
		t.Errorf("%q", a.stdout)
	}
	b.run("results", "show", "docs", "http://127.0.0.1:8080/page/0", "--record").wants(t, 0).says(t, `"url":"http://127.0.0.1:8080/page/0"`)
	b.run("results", "show", "docs", "http://127.0.0.1:8080/none").wants(t, 2).says(t, "does not know")
	b.run("results", "path", "docs").wants(t, 0).says(t, results.RunDir(w.sink.Dir(), "docs", 1))
	a := b.run("results", "tail", "docs", "-n", "2").wants(t, 0)
	if n := strings.Count(a.stdout, "\n"); n != 2 {
		t.Errorf("%d records, want 2: %s", n, a.stdout)
	}
	if a := b.run("results", "tail", "docs", "--failures").wants(t, 0); a.stdout != "" {
		t.Errorf("failures: %q", a.stdout)
	}
}
