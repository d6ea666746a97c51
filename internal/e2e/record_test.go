package e2e_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/internal/crawl"
	"holdfast/internal/lab"
	"holdfast/workflows"
)

// TestRecordHistories records the histories that workflows/testdata replays: one
// of each way through the workflows. It runs only when HOLDFAST_RECORD names the
// folder to write to, and a version to put into the names:
//
//	HOLDFAST_RECORD=$PWD/workflows/testdata HOLDFAST_RECORD_AS=v1 go test ./internal/e2e -run RecordHistories
func TestRecordHistories(t *testing.T) {
	dir, as := os.Getenv("HOLDFAST_RECORD"), os.Getenv("HOLDFAST_RECORD_AS")
	if dir == "" || as == "" {
		t.Skip("HOLDFAST_RECORD and HOLDFAST_RECORD_AS are not set")
	}
	s := newStack(t, 5*time.Minute)
	s.worker("w1")
	s.proxies(4, 4)
	refuses, err := lab.NewProxy(lab.ProxyOptions{Name: "refuses", Behaviour: lab.Refuse})
	s.ok(err)
	t.Cleanup(func() { _ = refuses.Close() })
	s.importProxies(refuses.ListLine()+"\n", 1)
	site := s.site(lab.SiteOptions{})

	record := func(name, id, runID string) {
		h := &history.History{}
		iter := s.temporal.GetWorkflowHistory(s.ctx, id, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for iter.HasNext() {
			e, err := iter.Next()
			s.ok(err)
			h.Events = append(h.Events, e)
		}
		blob, err := protojson.Marshal(h)
		s.ok(err)
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("replay_%s_%s.json.gz", name, as)))
		s.ok(err)
		z := gzip.NewWriter(f)
		_, err = z.Write(blob)
		s.ok(err)
		s.ok(z.Close())
		s.ok(f.Close())
	}

	fast := spec("fast")
	fast.Retry.MaxAttempts = 3
	urls := map[string]string{
		"url_success": "/ok/1", "url_failed": "/missing/1", "url_retry_after": "/throttled/1?after=2",
		"url_retried": "/flaky/1", "url_exhausted": "/truncated/1?times=forever",
	}
	var list []string
	for _, path := range urls {
		list = append(list, site.URL(path))
	}
	run := s.start(fast, list)
	s.finished(run)
	records := s.records(run)
	for name, path := range urls {
		r := records[site.URL(path)]
		record(name, r.WorkflowID, r.RunID)
	}
	record("campaign_finished", run.Name(), "")

	slow := spec("slow")
	slow.Fetch.Timeout = time.Minute // the regular path
	run = s.start(slow, []string{site.URL("/ok/2"), site.URL("/missing/2")})
	s.finished(run)
	for _, r := range s.records(run) {
		record("url_regular_"+string(r.State), r.WorkflowID, r.RunID)
	}

	for name, c := range map[string]struct {
		path    string
		timeout time.Duration
		state   crawl.State
	}{
		"canceled_in_fetch":   {"/slow/1?ms=20000", 0, crawl.Running},
		"canceled_in_regular": {"/slow/2?ms=20000", time.Minute, crawl.Running},
		"canceled_in_wait":    {"/throttled/9?after=60", 0, crawl.Waiting},
	} {
		d := spec("cancel-" + name[len("canceled_in_"):])
		d.Fetch.Timeout = max(c.timeout, d.Fetch.Timeout)
		run := s.start(d, []string{s.site(lab.SiteOptions{}).URL(c.path)})
		s.until(name+": "+string(c.state), func() bool {
			counts, err := s.frontier.Counts(s.ctx, run.Name())
			s.ok(err)
			return c.state == crawl.Running && counts.Running == 1 || c.state == crawl.Waiting && counts.Waiting == 1
		})
		s.ok(s.frontier.Cancel(s.ctx, run.Name()))
		s.ok(s.temporal.CancelWorkflow(s.ctx, run.Name(), ""))
		_ = s.temporal.GetWorkflow(s.ctx, run.Name(), "").Get(s.ctx, nil)
		for _, r := range s.records(run) {
			if r.State != crawl.StateCanceled {
				t.Errorf("%s: ended %s", name, r.State)
			}
			record("url_"+name, r.WorkflowID, r.RunID)
		}
	}
	record("campaign_canceled", workflows.CampaignInput{Campaign: "cancel-wait", Run: 1}.RunName(), "")
}
