package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/internal/crawl"
)

// URL takes one request from its first attempt to its end.
//
// Each pass leases under an id that is known before anything runs, so that
// Finish (record, release, ack) can compensate for a Fetch of which nothing is
// heard again. A wait of any length is a durable timer. The workflow completes
// with the page, fails with a typed reason, or closes Canceled.
func URL(ctx workflow.Context, in URLInput) (URLResult, error) {
	u := newURL(ctx, in)
	for {
		d, err := u.pass(ctx)
		if err != nil {
			return URLResult{}, err
		}
		switch d.Action {
		case crawl.Done:
			return u.result(), nil
		case crawl.Fail:
			return URLResult{}, u.failure(ctx, d)
		case crawl.Stopped:
			return URLResult{}, temporal.NewCanceledError()
		}
		u.wait(ctx, d)
		if ctx.Err() == nil && u.historyIsLong(ctx) { // a cancel does not reach the next run
			return URLResult{}, u.continueAsNew(ctx)
		}
	}
}

// url is the state of a URL's run.
type url struct {
	task  crawl.Task
	runID string
	seed  uint64
	carry URLCarry
	last  crawl.Outcome
	// parked: the frontier counts the URL as waiting.
	parked bool
}

// continueAfter is the number of history events after which a URL continues as new.
const continueAfter = 1000

func newURL(ctx workflow.Context, in URLInput) *url {
	info := workflow.GetInfo(ctx)
	u := &url{
		task:  in.Task,
		runID: info.WorkflowExecution.RunID,
		seed:  crawl.Seed(info.OriginalRunID),
	}
	if in.Carry != nil {
		u.carry = *in.Carry
		u.parked = true
	}
	return u
}

// pass is one turn of the loop: fetch under the next lease, decide, finish.
func (u *url) pass(ctx workflow.Context) (crawl.Decision, error) {
	u.carry.Pass++
	lease := crawl.LeaseID(u.task.WorkflowID(), u.runID, u.carry.Pass)
	finish := u.finisher(ctx, lease) // before the action it compensates for

	out := u.fetch(ctx, lease)
	d, ledgers := crawl.Decide(crawl.Facts{Task: u.task, Seed: u.seed, Pass: u.carry.Pass}, u.carry.Ledgers, out)
	if ctx.Err() != nil && (d.Action == crawl.Retry && !outage(out) || out.Class == crawl.Ended) {
		// Canceled: no more waiting. The next pass asks no site, whatever its
		// method; it only learns whether this run, in a task whose markers were
		// lost, had gone further.
		d = crawl.Decision{Action: crawl.Retry, Why: d.Why, Summary: d.Summary}
	}
	u.book(lease, out, d, ledgers)
	return d, finish(out, d)
}

// outage reports a pass that our own services failed: asking them again at once
// would spin.
func outage(o crawl.Outcome) bool {
	return o.Class == crawl.Deferred && (o.Why == crawl.WaitRedis || o.Why == crawl.WaitStore)
}

// book keeps what a pass came to.
func (u *url) book(lease string, out crawl.Outcome, d crawl.Decision, l crawl.Ledgers) {
	u.last, u.carry.Ledgers = out, l
	if !out.Exchanged() {
		if out.NextURL != "" {
			u.carry.NextURL, u.carry.Hops, u.carry.Trail = out.NextURL, out.Hops, lease
			if out.NextMethod != "" {
				u.carry.NextMethod = out.NextMethod
			}
		}
		return
	}
	if u.task.SafeToRepeat() {
		// Asked again, it is asked from the start. An unsafe request is not: its
		// target has answered it already, with the redirect.
		u.carry.NextURL, u.carry.Hops, u.carry.NextMethod, u.carry.Trail = "", 0, "", ""
	}
	u.carry.Attempts = append(u.carry.Attempts, crawl.Attempt{
		N: len(u.carry.Attempts) + 1, Worker: out.Worker, Proxy: out.Proxy, Region: out.Region,
		Class: out.Class, Reason: out.Reason, Status: out.Status,
		Started: crawl.Stamp(out.StartedMS), TookMS: out.TookMS,
		ThenWaitMS: d.Delay.Milliseconds(), Why: d.Summary,
	})
	if out.Proxy != "" && out.Class != crawl.OK {
		u.carry.Avoid = append(u.carry.Avoid, out.Proxy)
	}
}

// wait sleeps on a durable timer whose summary says why. A cancel ends it; after
// one only an outage of our own services is waited for.
func (u *url) wait(ctx workflow.Context, d crawl.Decision) {
	u.parked = d.Delay > 0
	if d.Delay <= 0 {
		return
	}
	if ctx.Err() != nil {
		if !outage(u.last) {
			return
		}
		var stop workflow.CancelFunc
		ctx, stop = workflow.NewDisconnectedContext(ctx)
		defer stop()
	}
	_ = workflow.NewTimerWithOptions(ctx, d.Delay, workflow.TimerOptions{Summary: d.Summary}).Get(ctx, nil)
}

func (u *url) result() URLResult {
	return URLResult{Status: u.last.Status, Attempts: len(u.carry.Attempts), Bytes: u.last.Bytes, SHA256: u.last.SHA256}
}

// failure is the typed error under which the Web UI and visibility list the URL.
func (u *url) failure(ctx workflow.Context, d crawl.Decision) error {
	_ = workflow.UpsertTypedSearchAttributes(ctx, ReasonAttr.ValueSet(string(d.Reason)))
	return newFailure(d.Reason, u.last, len(u.carry.Attempts))
}

func (u *url) historyIsLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetCurrentHistoryLength() > continueAfter
}

func (u *url) continueAsNew(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, URLWorkflow, URLInput{Task: u.task, Carry: &u.carry})
}
