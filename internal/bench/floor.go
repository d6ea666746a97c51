package bench

import (
	"context"
	"fmt"
	"sync"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"holdfast/internal/crawl"
	"holdfast/worker/host"
	"holdfast/workflows"
)

const (
	floorQueue    = "holdfast-bench-floor"
	floorWorkflow = "BenchFloor"
	// startsAtOnce is the product's feeder's.
	startsAtOnce = 16
)

// floor is the least that a durable URL can cost: an empty workflow with the
// product's input, search attributes and eager start.
type floor struct {
	b      *Bench
	worker worker.Worker

	mu   sync.Mutex
	seen map[string]bool
	free chan struct{} // one for each that may be in flight
}

func newFloor(b *Bench) *floor {
	f := &floor{b: b}
	f.worker = worker.New(b.at.Temporal, floorQueue, host.WorkerOptions(b.at.Worker, b.at.Slots))
	f.worker.RegisterWorkflowWithOptions(f.workflow, workflow.RegisterOptions{Name: floorWorkflow})
	return f
}

func (f *floor) start() error { return f.worker.Start() }
func (f *floor) stop()        { f.worker.Stop() }

// workflow does nothing. That it ran is told past Temporal: to ask the server for
// each would make the floor dearer than it is.
func (f *floor) workflow(ctx workflow.Context, _ workflows.URLInput) error {
	f.ran(workflow.GetInfo(ctx).WorkflowExecution.ID) //workflowcheck:ignore
	return nil
}

func (f *floor) ran(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[id] {
		f.seen[id] = true
		<-f.free
	}
}

func (f *floor) run(ctx context.Context, round string, n int) (done, error) {
	tasks, err := f.b.tasks("bench-"+round, round, n)
	if err != nil {
		return done{}, err
	}
	f.mu.Lock()
	f.seen, f.free = make(map[string]bool, n), make(chan struct{}, f.b.opts.Concurrency)
	f.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(startsAtOnce)
	for _, t := range tasks {
		select {
		case f.free <- struct{}{}:
		case <-ctx.Done():
			_ = group.Wait()
			return done{}, ctx.Err()
		}
		group.Go(func() error { return f.startOne(ctx, t) })
	}
	if err := group.Wait(); err != nil {
		return done{}, err
	}
	return done{ids: ids(tasks)}, f.closed(ctx, tasks)
}

func (f *floor) startOne(ctx context.Context, t crawl.Task) error {
	_, err := f.b.at.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: t.WorkflowID(), TaskQueue: floorQueue, EnableEagerStart: true,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		TypedSearchAttributes:                    attributes(t),
	}, floorWorkflow, workflows.URLInput{Task: t})
	if err != nil {
		return fmt.Errorf("start empty workflow: %w", err)
	}
	return nil
}

// closed waits for the last ones, which may have run and not be closed yet.
func (f *floor) closed(ctx context.Context, tasks []crawl.Task) error {
	for _, t := range tasks[max(0, len(tasks)-f.b.opts.Concurrency):] {
		if err := f.b.at.Temporal.GetWorkflow(ctx, t.WorkflowID(), "").Get(ctx, nil); err != nil {
			return fmt.Errorf("await empty workflow: %w", err)
		}
	}
	return nil
}

func attributes(t crawl.Task) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(workflows.CampaignAttr.ValueSet(t.Campaign), workflows.HostAttr.ValueSet(t.Host))
}

func ids(tasks []crawl.Task) []string {
	out := make([]string, len(tasks))
	for i, t := range tasks {
		out[i] = t.WorkflowID()
	}
	return out
}
