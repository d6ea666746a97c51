package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/proxypool"
	"holdfast/workflows"
)

// patience is how long a fetch waits in place; longer waits are the workflow's.
const patience = 2 * time.Second

// endBefore is how long before its activity's deadline a pass ends by itself: at
// the deadline the workflow goes on, and a lease must not be released, nor the
// site asked again, while the exchange is still under way or about to be committed.
const (
	endBefore    = 5 * time.Second
	commitBefore = 2 * time.Second
)

// Fetch is one pass: robots, the host's turn, a proxy, the exchange, the body,
// the commit. HTTP's failures are outcomes; an error means that Redis or the
// store did not answer, and that nothing was committed.
//
// Run again under the same lease id, after a crash, it returns the outcome that
// was committed and asks the site nothing.
func (a *Activities) Fetch(ctx context.Context, in workflows.FetchInput) (crawl.Outcome, error) {
	p := &pass{a: a, in: in, holder: token()}
	if deadline, ok := ctx.Deadline(); ok {
		p.commitBy = deadline.Add(-commitBefore)
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, deadline.Add(-endBefore), errLate)
		defer stop()
	}
	out, err := p.run(ctx)
	if err != nil {
		a.Log.Debug("pass failed", zap.String("lease", in.LeaseID), zap.Error(err))
		return crawl.Outcome{}, err
	}
	a.Log.Debug("pass", zap.String("lease", in.LeaseID), zap.String("class", string(out.Class)),
		zap.String("reason", string(out.Reason)), zap.Int("status", out.Status), zap.String("proxy", out.Proxy))
	return out, nil
}

// pass is one execution of Fetch.
type pass struct {
	a        *Activities
	in       workflows.FetchInput
	holder   string
	campaign frontier.RunInfo
	// commitBy is when the last commit must have ended. Zero: no bound.
	commitBy time.Time
	// unclosed are hosts whose Retry-After is not written yet.
	unclosed []openHost
	// site is the robots.txt that the current host's requests obey, nil for none.
	site *siteRules
}

func (p *pass) run(ctx context.Context) (crawl.Outcome, error) {
	if p.in.Settle {
		return p.settle(ctx)
	}
	run, err := p.a.runs.get(ctx, p.in.Task.RunName())
	if err != nil {
		return crawl.Outcome{}, err
	}
	p.campaign = run
	switch {
	case run.State == frontier.RunPaused:
		return p.early(ctx, crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitPaused})
	case !run.State.Open():
		return p.settle(ctx)
	}
	aloft, done, ok := p.a.flights.board(ctx, p.in.LeaseID, run.Name())
	if !ok {
		return p.early(ctx, crawl.Outcome{Class: crawl.HandedOn})
	}
	defer done()
	return p.fly(aloft)
}

// fly is a pass that may take leases: robots.txt, the lease, the exchange.
func (p *pass) fly(ctx context.Context) (crawl.Outcome, error) {
	target, err := parseTarget(p.targetURL())
	if err != nil {
		return crawl.Outcome{Class: crawl.Permanent, Reason: crawl.ReasonInvalidURL}, nil
	}
	limits := p.limits()
	if p.obeys() {
		verdict, err := p.robots(ctx, target)
		switch {
		case err == nil && verdict.outcome != nil:
			return p.early(ctx, *verdict.outcome)
		case err != nil:
			return p.ended(ctx, nil, err)
		}
		limits.Interval = max(limits.Interval, verdict.delay)
	}
	grant, out, err := p.acquire(ctx, p.in.LeaseID, crawl.HostKey(target), limits)
	if grant == nil {
		return p.ended(ctx, out, err)
	}
	if grant.Superseded && !p.in.Task.SafeToRepeat() {
		// Nobody knows whether the holder before sent it (RFC 9110 §9.2.2).
		return crawl.Outcome{Class: crawl.Ambiguous, Reason: crawl.ReasonStale, Requests: 1, Held: true}, nil
	}
	p.unpark(ctx)
	return p.exchange(ctx, grant, target)
}

// early ends a pass that did not come to its lease. An earlier execution of it
// may have: what that one committed counts, and an unsafe request that it may
// have sent is not sent again under the next lease.
func (p *pass) early(ctx context.Context, out crawl.Outcome) (crawl.Outcome, error) {
	// The pass may have been told to stop; this is how it ends well.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	if !p.in.Task.SafeToRepeat() {
		e, err := p.end(ctx)
		switch {
		case err != nil:
			return crawl.Outcome{}, err
		case e.Outcome == nil && e.Fresh && !e.Open:
			return out, nil
		}
		return p.tombstone(e)
	}
	blob, err := p.a.Pool.Committed(ctx, p.in.LeaseID)
	switch {
	case err != nil:
		return crawl.Outcome{}, fmt.Errorf("read committed outcome: %w", err)
	case blob == nil:
		return out, nil
	}
	return p.tombstone(&proxypool.Ended{Outcome: blob})
}

// settle asks no site: it learns what an earlier execution of this pass committed.
func (p *pass) settle(ctx context.Context) (crawl.Outcome, error) {
	e, err := p.end(ctx)
	if err != nil {
		return crawl.Outcome{}, err
	}
	if e.Outcome == nil && e.Fresh {
		return crawl.Outcome{Class: crawl.Canceled}, nil
	}
	return p.tombstone(e)
}

// end ends the pass's lease, unless it has ended, and returns its tombstone.
func (p *pass) end(ctx context.Context) (*proxypool.Ended, error) {
	got, err := p.a.Pool.Acquire(ctx, proxypool.AcquireRequest{
		LeaseID: p.in.LeaseID, Holder: p.holder, Claimant: p.in.Task.WorkflowID(),
		Host: p.in.Task.Host, Settle: true,
	})
	if err != nil {
		return nil, fmt.Errorf("settle lease: %w", err)
	}
	if got.Ended == nil {
		return nil, errors.New("settle lease: the pool answered with a grant")
	}
	return got.Ended, nil
}

// tombstone returns the outcome that stands under an ended lease.
func (p *pass) tombstone(e *proxypool.Ended) (crawl.Outcome, error) {
	if e.Outcome == nil {
		return crawl.Outcome{Class: crawl.Ended}, nil
	}
	var c crawl.Committed
	if err := json.Unmarshal(e.Outcome, &c); err != nil {
		return crawl.Outcome{}, fmt.Errorf("read committed outcome: %w", err)
	}
	if c.Page != nil {
		p.a.pages.put(p.in.LeaseID, c.Page)
	}
	return c.Outcome, nil
}

// acquire takes a lease, waiting in place for as long as patience lasts. Without
// a grant it returns the outcome to end with.
func (p *pass) acquire(ctx context.Context, lease, host string, limits proxypool.HostLimits) (*proxypool.Grant, *crawl.Outcome, error) {
	left := patience
	for {
		got, err := p.a.Pool.Acquire(ctx, proxypool.AcquireRequest{
			LeaseID: lease, Holder: p.holder, Claimant: p.in.Task.WorkflowID(), Host: host,
			Limits: limits, Selector: p.selector(), Seed: p.in.Seed + uint64(p.in.Pass),
		})
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("acquire lease: %w", err)
		case got.Grant != nil:
			return got.Grant, nil, nil
		case got.Ended != nil:
			out, err := p.tombstone(got.Ended)
			return nil, &out, err
		case got.Wait.After > left:
			return nil, deferred(got.Wait), nil
		}
		left -= got.Wait.After
		if err := sleep(ctx, got.Wait.After); err != nil {
			return nil, nil, err
		}
	}
}

// ended maps the end of a pass without an exchange: what stopped it counts more
// than the error it caused.
func (p *pass) ended(ctx context.Context, out *crawl.Outcome, err error) (crawl.Outcome, error) {
	switch cause := context.Cause(ctx); {
	case out != nil && err == nil:
		return *out, nil
	case errors.Is(cause, errAborted):
		return crawl.Outcome{Class: crawl.Canceled, Held: true}, nil
	case errors.Is(cause, errStopping):
		return crawl.Outcome{Class: crawl.HandedOn, Held: true}, nil
	}
	return crawl.Outcome{}, err
}

// unpark counts the URL as running again. Best effort: its end counts it right.
func (p *pass) unpark(ctx context.Context) {
	if !p.in.Parked {
		return
	}
	err := p.a.Frontier.Park(ctx, p.in.Task.RunName(), frontier.Parked{ID: p.in.Task.ID, Replay: p.in.Task.Replay})
	if err != nil {
		p.a.Log.Warn("unpark", zap.String("workflow", p.in.Task.WorkflowID()), zap.Error(err))
	}
}

// obeys reports whether the campaign obeys robots.txt.
func (p *pass) obeys() bool { return p.campaign.Spec.Politeness.Robots != "ignore" }

func (p *pass) limits() proxypool.HostLimits {
	return proxypool.HostLimits{Interval: p.campaign.Spec.Politeness.Delay, Concurrency: p.campaign.Spec.Politeness.PerHost}
}

func (p *pass) selector() proxypool.Selector {
	s := p.campaign.Spec.Proxies
	sel := proxypool.Selector{Direct: s.Direct, Tags: s.Tags, Region: s.Region, MaxTier: s.MaxTier, Avoid: p.in.Avoid}
	if s.Session == "host" && !s.Direct {
		sel.Session = p.in.Task.RunName() + "/h/" + p.in.Task.Host
	}
	return sel
}

func (p *pass) targetURL() string {
	if p.in.NextURL != "" {
		return p.in.NextURL
	}
	return p.in.Task.URL
}

func deferred(w *proxypool.Wait) *crawl.Outcome {
	return &crawl.Outcome{Class: crawl.Deferred, Why: w.Why, WaitMS: ceilMS(w.After), Held: w.Held}
}

// sleep waits in place, heartbeating; it ends with the context.
func sleep(ctx context.Context, d time.Duration) error {
	activity.RecordHeartbeat(ctx)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Abort asks the holder of a lease to stop: at once if it is here, else at its
// next renewal.
func (a *Activities) Abort(ctx context.Context, in workflows.AbortInput) error {
	a.flights.abort(in.LeaseID)
	if err := a.Pool.Abort(ctx, in.LeaseID); err != nil {
		return fmt.Errorf("abort lease: %w", err)
	}
	return nil
}
