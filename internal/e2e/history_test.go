package e2e_test

import (
	"fmt"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"

	"holdfast/internal/crawl"
	"holdfast/internal/lab"
)

// TestAFirstTrySuccessIsSmall holds the history's budget: 12 events and 8 KiB at
// most, 8 events on the fast path.
func TestAFirstTrySuccessIsSmall(t *testing.T) {
	t.Parallel()
	s := newStack(t, 2*time.Minute)
	s.worker("w1")
	s.proxies(2, 4)
	site := s.site(lab.SiteOptions{})
	run := s.start(spec("small"), urlsOf(20, func(i int) string { return site.URL(fmt.Sprintf("/ok/%d", i)) }))
	if c := s.finished(run); c.Completed != 20 {
		t.Fatalf("counts %+v, want 20 completed", c)
	}
	s.noLeases()
	for _, r := range s.records(run) {
		events, bytes := 0, 0
		iter := s.temporal.GetWorkflowHistory(s.ctx, r.WorkflowID, r.RunID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for iter.HasNext() {
			e, err := iter.Next()
			s.ok(err)
			events++
			bytes += proto.Size(e)
		}
		if events > 8 || bytes > 8<<10 {
			t.Errorf("%s: %d events, %d bytes; want at most 8 and 8192", r.WorkflowID, events, bytes)
		}
		if r.State != crawl.Completed || len(r.Attempts) != 1 {
			t.Errorf("%s: %s after %d attempts", r.URL, r.State, len(r.Attempts))
		}
	}
}
