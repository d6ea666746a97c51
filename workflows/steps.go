package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/internal/crawl"
)

// fetch runs one Fetch and always waits for its end, also when the run is
// canceled: a local activity that is given up goes on running, and releasing its
// lease would give the proxy away under a live exchange. On cancel the holder of
// the lease is asked to stop instead.
func (u *url) fetch(ctx workflow.Context, lease string) crawl.Outcome {
	in := FetchInput{
		Task: u.task, LeaseID: lease, Pass: u.carry.Pass, Avoid: u.carry.Avoid,
		NextURL: u.carry.NextURL, Hops: u.carry.Hops, NextMethod: u.carry.NextMethod, Trail: u.carry.Trail,
		Parked: u.parked, Settle: ctx.Err() != nil, Seed: u.seed,
	}
	held, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	future := u.startFetch(held, in)
	if !in.Settle {
		u.abortOnCancel(ctx, held, future, lease)
	}
	var out crawl.Outcome
	if err := future.Get(held, &out); err != nil {
		if temporal.IsTimeoutError(err) && !u.task.SafeToRepeat() {
			return crawl.Outcome{Class: crawl.Ended} // nobody knows whether it was sent
		}
		// HTTP's outcomes are not errors: this is Redis, the store or the worker.
		return crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitRedis}
	}
	return out
}

// abortOnCancel returns when the fetch has ended, or was asked to.
func (u *url) abortOnCancel(ctx, held workflow.Context, fetch workflow.Future, lease string) {
	canceled := false
	workflow.NewSelector(ctx).
		AddFuture(fetch, func(workflow.Future) {}).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { canceled = true }).
		Select(ctx)
	for canceled && !fetch.IsReady() {
		if workflow.ExecuteLocalActivity(localOptions(held, abortTimeout), ActivityAbort, AbortInput{LeaseID: lease}).Get(held, nil) == nil {
			return
		}
		// Redis is away; a long download must not outlive its cancel for that.
		again, stop := workflow.WithCancel(held)
		workflow.NewSelector(held).
			AddFuture(fetch, func(workflow.Future) {}).
			AddFuture(workflow.NewTimerWithOptions(again, abortTimeout, workflow.TimerOptions{Summary: "asking the fetch to stop"}), func(workflow.Future) {}).
			Select(held)
		stop()
	}
}

// startFetch picks the fast path (a local activity in the open workflow task) or
// the regular one (long exchanges, fetch workers on a queue of their own).
func (u *url) startFetch(ctx workflow.Context, in FetchInput) workflow.Future {
	timeout := u.task.EffectiveTimeout()
	if timeout <= fastTimeout && u.task.FetchQueue == "" {
		return workflow.ExecuteLocalActivity(localOptions(ctx, timeout+fetchMargin), ActivityFetch, in)
	}
	return workflow.ExecuteActivity(regularFetchOptions(ctx, u.task, timeout), ActivityFetch, in)
}

// finisher returns the compensation of the pass that leases under lease: record,
// release, ack. It runs on a context that a cancel does not reach. It returns an
// error only where nothing can be done but to fail the run.
func (u *url) finisher(ctx workflow.Context, lease string) func(crawl.Outcome, crawl.Decision) error {
	return func(out crawl.Outcome, d crawl.Decision) error {
		held, stop := workflow.NewDisconnectedContext(ctx)
		defer stop()
		in := FinishInput{
			Task: u.task, LeaseID: lease, RunID: u.runID, Outcome: out, Decision: d,
			Ledgers: u.carry.Ledgers, EndedMS: workflow.Now(ctx).UnixMilli(),
		}
		_, terminal := d.State()
		if terminal {
			in.Attempts, in.Trail = u.carry.Attempts, u.carry.Trail
		}
		if workflow.ExecuteLocalActivity(localOptions(held, finishTimeout), ActivityFinish, in).Get(held, nil) == nil {
			return nil
		}
		err := workflow.ExecuteActivity(regularFinishOptions(held, terminal), ActivityFinish, in).Get(held, nil)
		if !terminal {
			return nil // past the lease's own lifetime: the reaper has freed it
		}
		return err
	}
}

// Times of the steps.
const (
	// fastTimeout is the longest exchange that runs as a local activity.
	fastTimeout = 30 * time.Second
	// fetchMargin is what a Fetch may take beside its exchange: the wait in place,
	// robots.txt, the store, the commit.
	fetchMargin   = 60 * time.Second
	finishTimeout = 30 * time.Second
	abortTimeout  = 5 * time.Second
	// heartbeat is the regular fetch's heartbeat timeout.
	heartbeat = 30 * time.Second
	// leaseLife bounds a release: what is older was freed by the reaper.
	leaseLife = 45 * time.Second
)

// localOptions runs a step once, in place. A second try is the caller's: a local
// activity that retries holds its slot and writes events while it spins.
func localOptions(ctx workflow.Context, timeout time.Duration) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: timeout,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

func regularFetchOptions(ctx workflow.Context, task crawl.Task, timeout time.Duration) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           task.FetchQueue, // empty: the workflow's own
		StartToCloseTimeout: timeout + fetchMargin,
		HeartbeatTimeout:    heartbeat,
		WaitForCancellation: true,
		RetryPolicy:         patient(),
		Summary:             "fetch " + task.Host,
	})
}

func regularFinishOptions(ctx workflow.Context, terminal bool) workflow.Context {
	o := workflow.ActivityOptions{
		StartToCloseTimeout: finishTimeout,
		RetryPolicy:         patient(),
		Summary:             "record, release, ack",
	}
	if !terminal {
		o.ScheduleToCloseTimeout = leaseLife
	}
	return workflow.WithActivityOptions(ctx, o)
}

// eager retries as patient does, sooner: meanwhile nothing is fed.
func eager() *temporal.RetryPolicy {
	p := patient()
	p.InitialInterval = 500 * time.Millisecond
	return p
}

// patient retries for ever: what it retries is infrastructure.
func patient() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
}
