package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/workflows"
)

// Drain ends a run that was canceled: open URLs are asked to cancel, 50 at a
// time; those never started become skipped, each with its record. It may be
// killed and run again at any point, and returns when nothing is open.
func (a *Activities) Drain(ctx context.Context, in workflows.RunInput) (workflows.FeedResult, error) {
	run := crawl.RunName(in.Campaign, in.Run)
	if err := a.Frontier.Cancel(ctx, run); err != nil {
		return workflows.FeedResult{}, fmt.Errorf("cancel run %s: %w", run, err)
	}
	for swept := time.Now(); ; {
		activity.RecordHeartbeat(ctx)
		if err := a.skipQueued(ctx, run, in); err != nil {
			return workflows.FeedResult{}, err
		}
		// A workflow that has closed takes a cancel as well as any other: now and
		// then its state is asked for.
		sweep := time.Since(swept) > drainSweep
		if sweep {
			swept = time.Now()
		}
		if err := a.cancelOpen(ctx, run, in, sweep); err != nil {
			return workflows.FeedResult{}, err
		}
		ended, err := a.Frontier.FinishIfIdle(ctx, run)
		if err != nil {
			return workflows.FeedResult{}, fmt.Errorf("finish run %s: %w", run, err)
		}
		counts, err := a.Frontier.Counts(ctx, run)
		if err != nil {
			return workflows.FeedResult{}, fmt.Errorf("count run %s: %w", run, err)
		}
		if ended {
			return workflows.FeedResult{Canceling: true, Finished: true, Progress: progress(frontier.RunCanceled, counts)}, nil
		}
		if a.flights.isDraining() {
			return workflows.FeedResult{}, fmt.Errorf("drain run %s: %w", run, errStopping)
		}
		if err := pause(ctx, drainPause); err != nil {
			return workflows.FeedResult{}, err
		}
	}
}

// Pace of a drain.
const (
	drainPause = 250 * time.Millisecond
	drainSweep = 3 * time.Second
)

// skipQueued ends what was never claimed. The frontier names each skipped URL
// again until its record is confirmed, so that none is left without one.
func (a *Activities) skipQueued(ctx context.Context, run string, in workflows.RunInput) error {
	for {
		claims, err := a.Frontier.SkipQueued(ctx, run, crawl.ReasonSkippedCanceled, claimsAtOnce)
		if err != nil {
			return fmt.Errorf("skip queued URLs: %w", err)
		}
		if len(claims) == 0 {
			return nil
		}
		activity.RecordHeartbeat(ctx)
		var group errgroup.Group
		group.SetLimit(asksAtOnce)
		for _, c := range claims {
			group.Go(func() error {
				t := crawl.Task{
					Campaign: in.Campaign, Run: in.Run, ID: c.ID, URL: c.URL, Replay: c.Replay, Method: c.Method, AcceptedMS: c.AcceptedMS,
					Depth: c.Depth, Parent: c.Parent, Extras: c.Extras,
				}
				return a.inter(ctx, run, t, crawl.Skipped, crawl.ReasonSkippedCanceled)
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
}

// cancelOpen asks every open URL's workflow to cancel. A claim whose workflow is
// not there (and no feeder works any more that could start it) is skipped too.
// With sweep, one whose workflow ended without its ack is ended here.
func (a *Activities) cancelOpen(ctx context.Context, run string, in workflows.RunInput, sweep bool) error {
	for after := ""; ; {
		next, err := a.openClaims(ctx, run, after, cancelsAtOnce, func(c frontier.OpenClaim) error {
			return a.cancelClaim(ctx, run, taskOf(in.Campaign, in.Run, c), c, sweep)
		})
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

func (a *Activities) cancelClaim(ctx context.Context, run string, t crawl.Task, c frontier.OpenClaim, sweep bool) error {
	err := a.Temporal.CancelWorkflow(ctx, t.WorkflowID(), "")
	var gone *serviceerror.NotFound
	switch {
	case err == nil && !sweep:
		return nil
	case err != nil && !errors.As(err, &gone):
		return fmt.Errorf("cancel %s: %w", t.WorkflowID(), err)
	case err != nil && c.RunID == "" && c.Age < claimAge:
		return nil // its feeder may be about to start it
	case err != nil && c.RunID == "":
		return a.conclude(ctx, run, t, crawl.Skipped, crawl.ReasonSkippedCanceled)
	}
	return a.sweepClaim(ctx, run, t, c)
}

// Finalize closes a run's results: files of workers that are gone are cleaned.
func (a *Activities) Finalize(ctx context.Context, in workflows.RunInput) error {
	run := crawl.RunName(in.Campaign, in.Run)
	stop := a.heartbeats(ctx)
	defer stop()
	err := a.Sink.Reconcile(ctx, in.Campaign, in.Run, func(keys []crawl.RecordKey) ([]string, error) {
		return a.Frontier.RecordFiles(ctx, run, keys)
	})
	if err != nil {
		return fmt.Errorf("reconcile results of run %s: %w", run, err)
	}
	a.runs.forget(run)
	return nil
}

// heartbeats beats for a step that has no loop of its own.
func (a *Activities) heartbeats(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for pause(ctx, heartbeatGap) == nil {
			activity.RecordHeartbeat(ctx)
		}
	}()
	return cancel
}
