package bench

import (
	"context"
	"fmt"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
	"holdfast/proxypool"
	"holdfast/worker/host"
	"holdfast/workflows"
)

const (
	naiveQueue  = "holdfast-bench-naive"
	naiveParent = "BenchNaiveParent"
	naiveChild  = "BenchNaiveURL"
	naiveLease  = "BenchLease"
	naiveFetch  = "BenchFetch"
	naiveFinish = "BenchFinish"
	// naiveChildren is the number of children of one run of the parent.
	naiveChildren = 500
)

// naive is how one would write it first: a parent with a child workflow for each
// URL, and in it three regular activities, started eagerly. It has no frontier and
// commits nothing: it does less for a URL than the product.
type naive struct {
	b      *Bench
	worker worker.Worker
}

func newNaive(b *Bench) *naive {
	n := &naive{b: b}
	n.worker = worker.New(b.at.Temporal, naiveQueue, host.WorkerOptions(b.at.Worker, b.at.Slots))
	n.worker.RegisterWorkflowWithOptions(naiveParentWorkflow, workflow.RegisterOptions{Name: naiveParent})
	n.worker.RegisterWorkflowWithOptions(naiveURLWorkflow, workflow.RegisterOptions{Name: naiveChild})
	s := &naiveSteps{
		pool: proxypool.New(b.at.Redis, proxypool.Options{}), exchange: fetch.New(fetch.Options{}), sink: b.at.Sink, worker: b.at.Worker,
	}
	for name, step := range map[string]any{naiveLease: s.Lease, naiveFetch: s.Fetch, naiveFinish: s.Finish} {
		n.worker.RegisterActivityWithOptions(step, activity.RegisterOptions{Name: name})
	}
	return n
}

func (n *naive) start() error { return n.worker.Start() }
func (n *naive) stop()        { n.worker.Stop() }

func (n *naive) run(ctx context.Context, round string, count int) (done, error) {
	tasks, err := n.b.tasks("bench-"+round, round, count)
	if err != nil {
		return done{}, err
	}
	d := done{ids: ids(tasks)}
	for len(tasks) > 0 {
		k := min(len(tasks), naiveChildren)
		d.parent = fmt.Sprintf("bench-%s-parent-%d", round, len(tasks))
		w, err := n.b.at.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: d.parent, TaskQueue: naiveQueue,
			WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		}, naiveParent, naiveInput{Tasks: tasks[:k], AtOnce: n.b.opts.Concurrency})
		if err != nil {
			return done{}, fmt.Errorf("start naive parent: %w", err)
		}
		if err := w.Get(ctx, nil); err != nil {
			return done{}, fmt.Errorf("await naive parent: %w", err)
		}
		tasks = tasks[k:]
		d.perParent = k
	}
	return d, nil
}

type naiveInput struct {
	Tasks  []crawl.Task `json:"tasks"`
	AtOnce int          `json:"at_once"`
}

// naiveParentWorkflow keeps so many children in flight until all have ended.
func naiveParentWorkflow(ctx workflow.Context, in naiveInput) error {
	room := workflow.NewSemaphore(ctx, int64(in.AtOnce))
	var failed error
	for _, t := range in.Tasks {
		if err := room.Acquire(ctx, 1); err != nil {
			return err
		}
		child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: t.WorkflowID(), TypedSearchAttributes: attributes(t),
		}), naiveChild, workflows.URLInput{Task: t})
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer room.Release(1)
			if err := child.Get(ctx, nil); err != nil {
				failed = err
			}
		})
	}
	if err := room.Acquire(ctx, int64(in.AtOnce)); err != nil {
		return err
	}
	return failed
}

// naiveURLWorkflow leases, fetches and finishes, each a regular activity that
// Temporal runs again when it fails.
func naiveURLWorkflow(ctx workflow.Context, in workflows.URLInput) (workflows.URLResult, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second},
	})
	info := workflow.GetInfo(ctx)
	step := naiveStep{Task: in.Task, LeaseID: crawl.LeaseID(in.Task.WorkflowID(), info.WorkflowExecution.RunID, 1), RunID: info.WorkflowExecution.RunID}
	if err := workflow.ExecuteActivity(ctx, naiveLease, step).Get(ctx, &step.Lease); err != nil {
		return workflows.URLResult{}, err
	}
	if err := workflow.ExecuteActivity(ctx, naiveFetch, step).Get(ctx, &step.Fetched); err != nil {
		return workflows.URLResult{}, err
	}
	step.EndedMS = workflow.Now(ctx).UnixMilli()
	if err := workflow.ExecuteActivity(ctx, naiveFinish, step).Get(ctx, nil); err != nil {
		return workflows.URLResult{}, err
	}
	o := step.Fetched.Outcome
	return workflows.URLResult{Status: o.Status, Attempts: 1, Bytes: o.Bytes, SHA256: o.SHA256}, nil
}
