package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/internal/lab"
	"holdfast/workflows"
)

// TestThreeWorkersShareACampaign holds that a campaign is not run by the worker
// that happens to feed it: each of three runs 20 to 50 % of it.
func TestThreeWorkersShareACampaign(t *testing.T) {
	inFull(t)
	t.Parallel()
	const urls = 600
	s := newStack(t, 3*time.Minute)
	for i := range 3 {
		s.worker(fmt.Sprintf("w%d", i+1))
	}
	s.pollers(3)
	s.proxies(8, 8)
	site := s.site(lab.SiteOptions{})
	run := s.start(spec("shared"), urlsOf(urls, func(i int) string { return site.URL(fmt.Sprintf("/slow/%d?ms=50", i)) }))
	if c := s.finished(run); c.Completed != urls {
		t.Fatalf("counts %+v, want %d completed", c, urls)
	}
	s.noLeases()
	share := map[string]int{}
	for _, r := range s.records(run) {
		name, _, _ := strings.Cut(r.Attempts[len(r.Attempts)-1].Worker, "/")
		share[name]++
	}
	t.Logf("shares %v", share)
	for i := range 3 {
		name := fmt.Sprintf("w%d", i+1)
		if n := share[name]; n*100 < urls*20 || n*100 > urls*50 {
			t.Errorf("%s ran %d of %d URLs; want 20 to 50 %%", name, n, urls)
		}
	}
}

// pollers waits until n workers poll for URLs.
func (s *stack) pollers(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d workers poll", n), func() bool {
		resp, err := s.temporal.WorkflowService().DescribeTaskQueue(s.ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: s.at.Namespace, TaskQueueType: enums.TASK_QUEUE_TYPE_WORKFLOW,
			TaskQueue: &taskqueue.TaskQueue{Name: workflows.TaskQueue, Kind: enums.TASK_QUEUE_KIND_NORMAL},
		})
		s.ok(err)
		seen := map[string]bool{}
		for _, p := range resp.GetPollers() {
			seen[p.GetIdentity()] = true
		}
		return len(seen) >= n
	})
}
