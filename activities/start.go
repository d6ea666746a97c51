package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/proxypool"
	"holdfast/workflows"
)

// startsAtOnce is how many workflows a feeder starts in parallel.
const startsAtOnce = 16

// start starts a workflow for each claim and marks it. A claim that could not be
// started goes back to the queue; starting one twice starts it once.
func (f *feeder) start(ctx context.Context, claims []frontier.Claim) (int, error) {
	var (
		mu      sync.Mutex
		started []frontier.Started
		failed  error
		group   errgroup.Group
	)
	defer f.a.heartbeats(ctx)()
	group.SetLimit(startsAtOnce)
	for _, c := range claims {
		group.Go(func() error {
			activity.RecordHeartbeat(ctx)
			runID, err := f.startOne(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = errors.Join(failed, err, f.giveBack(ctx, c))
				return nil
			}
			started = append(started, frontier.Started{ID: c.ID, Epoch: c.Epoch, RunID: runID})
			return nil
		})
	}
	_ = group.Wait()
	if len(started) > 0 {
		if err := f.a.Frontier.MarkStarted(ctx, f.run, started); err != nil {
			return len(started), fmt.Errorf("mark started: %w", err)
		}
	}
	return len(started), failed
}

func (f *feeder) giveBack(ctx context.Context, c frontier.Claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return f.a.Frontier.Requeue(ctx, f.run, c.ID, c.Epoch) // else the sweeper finds it
}

func (f *feeder) startOne(ctx context.Context, c frontier.Claim) (string, error) {
	task := f.task(c)
	run, err := f.a.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       task.WorkflowID(),
		TaskQueue:                                workflows.TaskQueue,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         f.a.startsEagerly(ctx),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.CampaignAttr.ValueSet(task.Campaign), workflows.HostAttr.ValueSet(task.Host)),
	}, workflows.URLWorkflow, workflows.URLInput{Task: task})
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return already.RunId, nil
	case err != nil:
		return "", fmt.Errorf("start %s: %w", task.WorkflowID(), err)
	}
	return run.GetRunID(), nil
}

// task makes a claim's task. It names only what differs from the defaults: it is
// the workflow's input, and so the larger part of its history.
func (f *feeder) task(c frontier.Claim) crawl.Task {
	t := crawl.Task{
		Behaviour: crawl.Behaviour, Campaign: f.in.Campaign, Run: f.in.Run, ID: c.ID, URL: c.URL, Method: c.Method,
		Host: c.Host, Replay: c.Replay, Epoch: c.Epoch, Depth: c.Depth, Parent: c.Parent,
		AcceptedMS: c.AcceptedMS, Extras: c.Extras, Policy: f.spec.Retry, FetchQueue: f.spec.Fetch.Queue,
	}
	if f.spec.Fetch.Timeout != crawl.DefaultTimeout {
		t.Timeout = f.spec.Fetch.Timeout
	}
	return t
}

func (f *feeder) selector() proxypool.Selector {
	return proxypool.Selector{Tags: f.spec.Proxies.Tags, Region: f.spec.Proxies.Region, MaxTier: f.spec.Proxies.MaxTier}
}

// startsEagerly reports whether a workflow's first task should run here. Alone on
// its queue a worker takes its own starts while it has slots to spare; beside
// others it leaves them to matching, so that each gets its share.
func (a *Activities) startsEagerly(ctx context.Context) bool {
	return a.Running() < a.Slots/2 && a.peers.get(ctx, a.Temporal, a.Namespace) <= 1
}

// peerCount is the number of workers that poll the URL queue, a few seconds old.
type peerCount struct {
	mu    sync.Mutex
	asked time.Time
	n     atomic.Int64
}

const peersAge = 5 * time.Second

func (p *peerCount) get(ctx context.Context, c client.Client, namespace string) int64 {
	if p.mu.TryLock() {
		defer p.mu.Unlock()
		if time.Since(p.asked) > peersAge {
			p.asked = time.Now()
			p.n.Store(countPollers(ctx, c, namespace))
		}
	}
	return p.n.Load()
}

// countPollers counts identities seen in the last minute; 0 when it cannot be told.
func countPollers(ctx context.Context, c client.Client, namespace string) int64 {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resp, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: namespace, TaskQueueType: enums.TASK_QUEUE_TYPE_WORKFLOW,
		TaskQueue: &taskqueue.TaskQueue{Name: workflows.TaskQueue, Kind: enums.TASK_QUEUE_KIND_NORMAL},
	})
	if err != nil {
		return 0
	}
	seen := map[string]bool{}
	for _, p := range resp.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < time.Minute {
			seen[p.GetIdentity()] = true
		}
	}
	return int64(len(seen))
}
