package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Campaign keeps one run of a campaign going until every accepted URL has ended.
//
// The URLs are in the frontier; a Feed activity claims them and starts their
// workflows for a minute at a time. Between two stretches the campaign shows its
// progress and, when its history is long, continues as new. Canceled, it drains:
// open URLs are canceled, those never started become skipped.
func Campaign(ctx workflow.Context, in CampaignInput) (Progress, error) {
	c := &campaign{in: in}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, c.query); err != nil {
		return Progress{}, err
	}
	for {
		fed, err := c.feed(ctx)
		c.show(ctx, fed)
		switch {
		case ctx.Err() != nil || fed.Canceling:
			return c.cancel(ctx)
		case err != nil:
			return c.progress, err
		case fed.Finished:
			return c.finish(ctx)
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested() || c.stretches >= stretchesPerRun:
			return c.progress, workflow.NewContinueAsNewError(ctx, CampaignWorkflow, c.in)
		}
	}
}

type campaign struct {
	in        CampaignInput
	progress  Progress
	stretches int
}

const (
	// stretchesPerRun bounds a run's history: 6 events a stretch, some 600 in all.
	stretchesPerRun = 100
	defaultFeedFor  = time.Minute
	// feedHeartbeat bounds how long a killed worker's feeder is waited for: until
	// then no further URL of the run starts. Feeders beat every 3 s.
	feedHeartbeat = 10 * time.Second
)

func (c *campaign) query() (Progress, error) { return c.progress, nil }

// feed runs one stretch. Its number orders feeders: a feeder that was believed
// dead finds a higher one and stops at its next claim.
func (c *campaign) feed(ctx workflow.Context) (FeedResult, error) {
	c.stretches++
	d := c.in.FeedFor
	if d <= 0 {
		d = defaultFeedFor
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: d + 5*time.Minute,
		HeartbeatTimeout:    feedHeartbeat,
		WaitForCancellation: true,
		RetryPolicy:         eager(),
		Summary:             "feed " + c.in.RunName(),
	})
	var out FeedResult
	err := workflow.ExecuteActivity(ctx, ActivityFeed, FeedInput{
		Campaign: c.in.Campaign, Run: c.in.Run, For: d, Feeder: workflow.Now(ctx).UnixMilli(),
	}).Get(ctx, &out)
	return out, err
}

// show publishes where the run stands, in the Web UI's details of the workflow.
func (c *campaign) show(ctx workflow.Context, fed FeedResult) {
	if fed.Progress == (Progress{}) {
		return
	}
	c.progress = fed.Progress
	workflow.SetCurrentDetails(ctx, c.progress.Table())
}

// finish closes the run's results.
func (c *campaign) finish(ctx workflow.Context) (Progress, error) {
	err := c.control(ctx, ActivityFinalize, time.Hour, "close the results", nil)
	return c.progress, err
}

// cancel drains the run on a context that the cancel does not reach.
func (c *campaign) cancel(ctx workflow.Context) (Progress, error) {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	var fed FeedResult
	if err := c.control(ctx, ActivityDrain, 24*time.Hour, "cancel open URLs", &fed); err != nil {
		return c.progress, err
	}
	c.show(ctx, fed)
	if _, err := c.finish(ctx); err != nil {
		return c.progress, err
	}
	return c.progress, temporal.NewCanceledError()
}

// control runs an activity that heartbeats and may take long.
func (c *campaign) control(ctx workflow.Context, activity string, timeout time.Duration, summary string, out any) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: timeout,
		HeartbeatTimeout:    heartbeat,
		WaitForCancellation: true,
		RetryPolicy:         patient(),
		Summary:             summary,
	})
	return workflow.ExecuteActivity(ctx, activity, RunInput{Campaign: c.in.Campaign, Run: c.in.Run}).Get(ctx, out)
}

// Table renders the progress as the Markdown that the Web UI shows.
func (p Progress) Table() string {
	return fmt.Sprintf("**%s**\n\n| accepted | queued | running | waiting | completed | failed | skipped | canceled |\n"+
		"|---|---|---|---|---|---|---|---|\n| %d | %d | %d | %d | %d | %d | %d | %d |\n",
		p.State, p.Accepted, p.Queued, p.Running, p.Waiting, p.Completed, p.Failed, p.Skipped, p.Canceled)
}
