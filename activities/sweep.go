package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/workflows"
)

// A claim younger than this is somebody's work in progress.
const claimAge = 30 * time.Second

const (
	sweepPage     = 200
	asksAtOnce    = 16
	cancelsAtOnce = 50
)

// sweep asks Temporal what became of a page of a run's open claims, from the
// position after on: a claim whose workflow was never started goes back to the
// queue, one whose workflow ended without its ack (terminated, timed out, gone)
// becomes a dead letter with that reason. Claims not marked as started are left
// alone until they are of age unstarted. It returns the next page's position, ""
// after the last: a million URLs that wait are not asked about at once.
func (a *Activities) sweep(ctx context.Context, in workflows.FeedInput, after string, unstarted time.Duration) (next string, err error) {
	defer a.heartbeats(ctx)()
	run := crawl.RunName(in.Campaign, in.Run)
	return a.openClaims(ctx, run, after, asksAtOnce, func(c frontier.OpenClaim) error {
		if c.Age < claimAge && (c.RunID != "" || c.Age < unstarted) {
			return nil
		}
		return a.sweepClaim(ctx, run, taskOf(in.Campaign, in.Run, c), c)
	})
}

// taskOf is the task of a claim that no workflow will end.
func taskOf(campaign string, run int, c frontier.OpenClaim) crawl.Task {
	return crawl.Task{
		Campaign: campaign, Run: run, ID: c.ID, URL: c.URL, Method: c.Method, Replay: c.Replay,
		Depth: c.Depth, Parent: c.Parent, AcceptedMS: c.AcceptedMS, Extras: c.Extras,
	}
}

// openClaims treats a page of the open claims, atOnce in parallel.
func (a *Activities) openClaims(ctx context.Context, run, after string, atOnce int, do func(frontier.OpenClaim) error) (next string, err error) {
	claims, next, err := a.Frontier.OpenClaims(ctx, run, after, sweepPage)
	if err != nil {
		return after, fmt.Errorf("list open claims: %w", err)
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, c := range claims {
		group.Go(func() error {
			activity.RecordHeartbeat(ctx)
			return do(c)
		})
	}
	return next, group.Wait()
}

func (a *Activities) sweepClaim(ctx context.Context, run string, t crawl.Task, c frontier.OpenClaim) error {
	d, err := a.Temporal.DescribeWorkflowExecution(ctx, t.WorkflowID(), "")
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone) && c.RunID == "":
		return a.Frontier.Requeue(ctx, run, c.ID, c.Epoch)
	case errors.As(err, &gone):
		return a.bury(ctx, run, t, crawl.ReasonLost)
	case err != nil:
		return fmt.Errorf("describe %s: %w", t.WorkflowID(), err)
	}
	switch d.GetWorkflowExecutionInfo().GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return a.bury(ctx, run, t, crawl.ReasonTerminated)
	case enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return a.bury(ctx, run, t, crawl.ReasonTimedOut)
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_CANCELED:
		// It acked before it closed; that this claim is open still means that
		// Redis lost the ack.
		return a.bury(ctx, run, t, crawl.ReasonLost)
	}
	return nil
}

// bury ends a URL whose workflow can no longer do so, with its record.
func (a *Activities) bury(ctx context.Context, run string, t crawl.Task, reason crawl.Reason) error {
	return a.conclude(ctx, run, t, crawl.Failed, reason)
}

// conclude ends a URL that no workflow will end, unless it has ended meanwhile.
func (a *Activities) conclude(ctx context.Context, run string, t crawl.Task, state crawl.State, reason crawl.Reason) error {
	info, err := a.Frontier.URL(ctx, run, t.ID)
	if err != nil {
		return fmt.Errorf("read URL %s: %w", t.ID, err)
	}
	if info.State.Terminal() {
		return nil // acked since the claim was listed
	}
	return a.inter(ctx, run, t, state, reason)
}

// inter writes the record of a URL that no workflow ends, then acks it.
func (a *Activities) inter(ctx context.Context, run string, t crawl.Task, state crawl.State, reason crawl.Reason) error {
	r := crawl.Record{
		Schema: crawl.RecordSchema, Campaign: t.Campaign, Run: t.Run, Replay: t.Replay, ID: t.ID, URL: t.URL,
		Method: t.EffectiveMethod(), Parent: t.Parent, Depth: t.Depth, State: state, Reason: &reason, Attempts: []crawl.Attempt{},
		Accepted: crawl.Stamp(t.AcceptedMS), Ended: crawl.Stamp(time.Now().UnixMilli()), WorkflowID: t.WorkflowID(),
	}
	if t.Extras {
		extra, err := a.Frontier.Extras(ctx, run, t.ID)
		if err != nil {
			return fmt.Errorf("read meta: %w", err)
		}
		r.Meta = extra.Meta
	}
	file, err := a.write(ctx, r)
	if err != nil {
		return err
	}
	acked, err := a.Frontier.Ack(ctx, run, frontier.Ack{ID: t.ID, Replay: t.Replay, State: state, Reason: reason, File: file})
	if err != nil {
		return fmt.Errorf("ack %s: %w", t.ID, err)
	}
	return a.settleRecord(ctx, r, file, acked)
}
