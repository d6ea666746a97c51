package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueue "go.temporal.io/api/taskqueue/v1"
	workflow "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/grpc"

	"holdfast/activities"
	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/workflows"
)

func TestAHostsQuotaIsWhatCanRunSoon(t *testing.T) {
	t.Parallel()
	queue := frontier.HostQueue{Host: "h", Queued: 100}
	for name, c := range map[string]struct {
		p    crawl.Politeness
		turn time.Duration
		h    frontier.HostQueue
		want int
	}{
		"all of them, without limits":             {crawl.Politeness{}, 0, queue, 100},
		"twice the host's concurrency":            {crawl.Politeness{PerHost: 2}, 0, queue, 4},
		"less those that run":                     {crawl.Politeness{PerHost: 2}, 0, frontier.HostQueue{Queued: 100, Running: 3}, 1},
		"none when more run than that":            {crawl.Politeness{PerHost: 2}, 0, frontier.HostQueue{Queued: 100, Running: 9}, 0},
		"no more than are queued":                 {crawl.Politeness{PerHost: 8}, 0, frontier.HostQueue{Queued: 3}, 3},
		"none while the host is closed":           {crawl.Politeness{PerHost: 2}, 10 * time.Second, queue, 0},
		"one of a slow host":                      {crawl.Politeness{PerHost: 8, Delay: 10 * time.Second}, 0, queue, 1},
		"as many as turns come within patience":   {crawl.Politeness{PerHost: 50, Delay: 100 * time.Millisecond}, 0, queue, 18},
		"fewer when the first turn is later":      {crawl.Politeness{PerHost: 50, Delay: 100 * time.Millisecond}, 1650 * time.Millisecond, queue, 2},
		"none when the turn is just out of reach": {crawl.Politeness{PerHost: 50, Delay: 100 * time.Millisecond}, 1751 * time.Millisecond, queue, 0},
	} {
		if got := activities.HostQuota(c.p, c.turn, c.h); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// pollers answers the feeder's question who else polls: nobody can tell.
type pollers struct {
	workflowservice.WorkflowServiceClient
}

func (pollers) DescribeTaskQueue(context.Context, *workflowservice.DescribeTaskQueueRequest, ...grpc.CallOption) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueue.PollerInfo{}}, nil
}

// temporal is a client that starts nothing; start says with what error.
func temporal(t *testing.T, start error) *mocks.Client {
	c := mocks.NewClient(t)
	c.On("WorkflowService").Return(pollers{}).Maybe()
	c.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
			if start != nil {
				return nil, start
			}
			run := mocks.NewWorkflowRun(t)
			run.On("GetRunID").Return("run-of-" + o.ID).Maybe()
			return run, nil
		}).Maybe()
	return c
}

// queued gives every claim back, so that the feeder finds them.
func (w *world) queued(tasks []crawl.Task) {
	for _, task := range tasks {
		must(w.t, w.frontier.Requeue(w.t.Context(), w.run, task.ID, task.Epoch))
	}
}

func (w *world) feed(c client.Client, d time.Duration) (workflows.FeedResult, error) {
	w.change = func(cfg *activities.Config) { cfg.Temporal = c }
	var out workflows.FeedResult
	in := workflows.FeedInput{Campaign: "docs", Run: 1, For: d, Feeder: time.Now().UnixMilli()}
	err := execute(w.t.Context(), workflows.ActivityFeed, w.process("a"), in, &out)
	return out, err
}

func TestAClaimWhoseStartFailsGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.queued(w.start(crawl.Request{URL: "http://127.0.0.1:1/1"}, crawl.Request{URL: "http://127.0.0.1:1/2"}))
	if _, err := w.feed(temporal(t, errors.New("frontend is away")), time.Minute); err == nil {
		t.Error("the feeder says nothing of it")
	}
	if c := w.counts(); c.Queued != 2 || c.Running != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestAStartThatHadGoneThroughIsMarkedAsTheRunningOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	tasks := w.start(crawl.Request{URL: "http://127.0.0.1:1/1"})
	w.queued(tasks)
	already := serviceerror.NewWorkflowExecutionAlreadyStarted("already", "request", "the-run")
	out, err := w.feed(temporal(t, already), 100*time.Millisecond)
	must(t, err)
	info, err := w.frontier.URL(t.Context(), w.run, tasks[0].ID)
	must(t, err)
	if out.Started != 1 || info.RunID != "the-run" || info.State != crawl.Running {
		t.Errorf("result %+v, URL %+v", out, info)
	}
}

// aged makes every claim look old enough for the sweeper.
type aged struct{ activities.Frontier }

func (f aged) OpenClaims(ctx context.Context, run, after string, n int) ([]frontier.OpenClaim, string, error) {
	claims, next, err := f.Frontier.OpenClaims(ctx, run, after, n)
	for i := range claims {
		claims[i].Age += time.Hour
	}
	return claims, next, err
}

func TestTheSweeperAsksWhatBecameOfAClaim(t *testing.T) {
	t.Parallel()
	status := func(s enums.WorkflowExecutionStatus) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{Status: s}}
	}
	gone := serviceerror.NewNotFound("no such workflow")
	for name, c := range map[string]struct {
		started bool
		found   *workflowservice.DescribeWorkflowExecutionResponse
		err     error
		state   crawl.State
		reason  crawl.Reason
	}{
		"never started and not there":  {false, nil, gone, crawl.Queued, ""},
		"started and not there":        {true, nil, gone, crawl.Failed, crawl.ReasonLost},
		"it runs":                      {true, status(enums.WORKFLOW_EXECUTION_STATUS_RUNNING), nil, crawl.Running, ""},
		"it runs and nobody marked it": {false, status(enums.WORKFLOW_EXECUTION_STATUS_RUNNING), nil, crawl.Running, ""},
		"terminated":                   {true, status(enums.WORKFLOW_EXECUTION_STATUS_TERMINATED), nil, crawl.Failed, crawl.ReasonTerminated},
		"timed out":                    {true, status(enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT), nil, crawl.Failed, crawl.ReasonTimedOut},
		"closed, and its ack was lost": {true, status(enums.WORKFLOW_EXECUTION_STATUS_COMPLETED), nil, crawl.Failed, crawl.ReasonLost},
	} {
		for how, run := range map[string]bool{"while it feeds": false, "while it drains": true} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "")
				task := w.start(crawl.Request{URL: "http://127.0.0.1:1/1", Meta: []byte(`{"k":1}`)})[0]
				if c.started {
					must(t, w.frontier.MarkStarted(t.Context(), w.run, []frontier.Started{{ID: task.ID, Epoch: task.Epoch, RunID: "r"}}))
				}
				tc := mocks.NewClient(t)
				tc.On("WorkflowService").Return(pollers{}).Maybe()
				tc.On("DescribeWorkflowExecution", mock.Anything, task.WorkflowID(), "").Return(c.found, c.err).Maybe()
				tc.On("CancelWorkflow", mock.Anything, task.WorkflowID(), "").Return(nil).Maybe() // a closed one takes it too
				w.change = func(cfg *activities.Config) { cfg.Temporal, cfg.Frontier = tc, aged{w.frontier} }
				w.spec.Concurrency = 1
				if run {
					if c.state != crawl.Failed {
						t.Skip("a drain goes on until it has ended")
					}
					var out workflows.FeedResult
					must(t, execute(t.Context(), workflows.ActivityDrain, w.process("a"), workflows.RunInput{Campaign: "docs", Run: 1}, &out))
				} else {
					must(t, w.frontier.Pause(t.Context(), w.run)) // so that what goes back is not claimed again
					in := workflows.FeedInput{Campaign: "docs", Run: 1, For: time.Millisecond, Feeder: time.Now().UnixMilli()}
					must(t, execute(t.Context(), workflows.ActivityFeed, w.process("a"), in, nil))
				}
				info, err := w.frontier.URL(t.Context(), w.run, task.ID)
				must(t, err)
				if info.State != c.state || info.Reason != c.reason {
					t.Errorf("the URL is %s %q, want %s %q", info.State, info.Reason, c.state, c.reason)
				}
				if c.state == crawl.Failed {
					if r := w.record(); r.Reason == nil || *r.Reason != c.reason || string(r.Meta) != `{"k":1}` {
						t.Errorf("record %+v", r)
					}
				}
			})
		}
	}
}
