package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/results"
	"holdfast/workflows"
)

// Pace of a feeder.
const (
	// hostsAtOnce is how many hosts one look at the frontier considers.
	hostsAtOnce = 64
	// claimsAtOnce bounds one claim, and so what a killed feeder leaves to the sweeper.
	claimsAtOnce = 128
	// idlePause is the first pause of a feeder that finds nothing to start; it
	// doubles, from the second second on, to idleCap.
	idlePause    = 100 * time.Millisecond
	idleFor      = 2 * time.Second
	idleCap      = time.Second
	heartbeatGap = 3 * time.Second
	// sweepEvery is the time between two rounds over the open claims, sweepPace
	// that between two pages of a round.
	sweepEvery = 30 * time.Second
	sweepPace  = 2 * time.Second
)

// Feed claims URLs host by host and starts their workflows, for in.For or until
// nothing is left to do. It claims only what can run soon: a host whose next turn
// is near, no more URLs at once than the campaign, its hosts and its proxies carry.
func (a *Activities) Feed(ctx context.Context, in workflows.FeedInput) (workflows.FeedResult, error) {
	f := &feeder{a: a, in: in, run: crawl.RunName(in.Campaign, in.Run)}
	f.firstSweep = true
	f.number = in.Feeder*100 + int64(activity.GetInfo(ctx).Attempt)
	if err := f.open(ctx); err != nil {
		return workflows.FeedResult{}, err
	}
	err := f.loop(ctx)
	if errors.Is(err, frontier.ErrFenced) {
		return workflows.FeedResult{}, fmt.Errorf("feed %s: %w", f.run, err)
	}
	if err != nil {
		a.Log.Warn("feed", zap.String("run", f.run), zap.Error(err))
		return workflows.FeedResult{}, err
	}
	f.out.Progress = progress(f.state, f.counts)
	return f.out, nil
}

type feeder struct {
	a      *Activities
	in     workflows.FeedInput
	run    string
	number int64
	spec   crawl.Spec
	state  frontier.RunState
	counts frontier.Counts
	out    workflows.FeedResult

	lastBeat   time.Time
	lastSweep  time.Time
	firstSweep bool
	sweptTo    string // where the sweep goes on, "" between two rounds
}

func (f *feeder) open(ctx context.Context) error {
	info, err := f.a.Frontier.Run(ctx, f.run)
	if err != nil {
		return fmt.Errorf("read run %s: %w", f.run, err)
	}
	f.spec = info.Spec
	if err := f.a.Frontier.TakeOver(ctx, f.run, f.number); err != nil {
		return fmt.Errorf("take over run %s: %w", f.run, err)
	}
	err = f.a.Sink.OpenRun(ctx, results.RunMeta{
		Campaign: info.Campaign, Run: info.Run, Started: crawl.Stamp(info.Created.UnixMilli()),
		Source: info.Source.Label, Spec: info.Spec, Version: f.a.Version,
	})
	if err != nil {
		return fmt.Errorf("open results of run %s: %w", f.run, err)
	}
	return nil
}

func (f *feeder) loop(ctx context.Context) error {
	until, busy := time.Now().Add(f.in.For), time.Now()
	idle := idlePause
	for {
		done, err := f.look(ctx)
		if err != nil || done {
			return err
		}
		if time.Now().After(until) || f.a.flights.isDraining() {
			return nil
		}
		started, err := f.feed(ctx)
		if err != nil {
			return err
		}
		f.out.Started += started
		if started > 0 {
			busy, idle = time.Now(), idlePause
			continue
		}
		if err := pause(ctx, idle); err != nil {
			return err
		}
		if time.Since(busy) > idleFor {
			idle = min(2*idle, idleCap)
		}
	}
}

// look reads where the run stands; done says that this stretch is over.
func (f *feeder) look(ctx context.Context) (done bool, err error) {
	f.beat(ctx)
	states, err := f.a.Frontier.States(ctx, []string{f.run})
	if err != nil {
		return false, fmt.Errorf("read state of run %s: %w", f.run, err)
	}
	f.state = states[0]
	if f.counts, err = f.a.Frontier.Counts(ctx, f.run); err != nil {
		return false, fmt.Errorf("count run %s: %w", f.run, err)
	}
	switch f.state {
	case frontier.RunFinished:
		f.out.Finished = true
		return true, nil
	case frontier.RunCanceling, frontier.RunCanceled:
		f.out.Canceling = true
		return true, nil
	}
	if f.counts.Queued == 0 && f.counts.Open() == 0 {
		ended, err := f.a.Frontier.FinishIfIdle(ctx, f.run)
		if err != nil {
			return false, fmt.Errorf("finish run %s: %w", f.run, err)
		}
		if ended {
			f.state, f.out.Finished = frontier.RunFinished, true
			return true, nil
		}
	}
	return false, f.sweepIfDue(ctx)
}

// feed claims once and starts what it claimed.
func (f *feeder) feed(ctx context.Context) (int, error) {
	room := int64(f.spec.Concurrency) - f.counts.Running
	if f.state == frontier.RunPaused || f.counts.Queued == 0 || room <= 0 {
		return 0, nil
	}
	quotas, err := f.quotas(ctx, int(min(room, claimsAtOnce)))
	if err != nil || len(quotas) == 0 {
		return 0, err
	}
	claims, err := f.a.Frontier.Claim(ctx, f.run, f.number, quotas)
	if err != nil {
		return 0, fmt.Errorf("claim URLs: %w", err)
	}
	return f.start(ctx, claims)
}

// quotas says how many URLs of which host to claim: those whose turn comes
// within a fetch's patience, so that they wait in place and not on a timer.
func (f *feeder) quotas(ctx context.Context, room int) ([]frontier.HostQuota, error) {
	hosts, err := f.a.Frontier.Peek(ctx, f.run, hostsAtOnce)
	if err != nil || len(hosts) == 0 {
		return nil, err
	}
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Host
	}
	turns, err := f.a.Pool.Turns(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("read hosts' turns: %w", err)
	}
	capacity, err := f.capacity(ctx)
	if err != nil {
		return nil, err
	}
	room = min(room, capacity)
	var quotas []frontier.HostQuota
	for i, h := range hosts {
		n := min(hostQuota(f.spec.Politeness, turns[i], h), room)
		if n > 0 {
			quotas = append(quotas, frontier.HostQuota{Host: h.Host, N: n})
			room -= n
		}
	}
	return quotas, nil
}

// hostQuota is the number of a host's URLs that can run within a fetch's
// patience: by its interval, and at most twice its concurrency at once.
func hostQuota(p crawl.Politeness, turn time.Duration, h frontier.HostQueue) int {
	soon := patience - 250*time.Millisecond
	if turn > soon {
		return 0
	}
	n := h.Queued
	if p.PerHost > 0 {
		n = min(n, 2*int64(p.PerHost)-h.Running)
	}
	if p.Delay > 0 {
		n = min(n, int64((soon-turn)/p.Delay)+1)
	}
	return int(max(n, 0))
}

// capacity is how many more URLs the eligible proxies can carry.
func (f *feeder) capacity(ctx context.Context) (int, error) {
	if f.spec.Proxies.Direct {
		return claimsAtOnce, nil
	}
	n, err := f.a.Pool.Capacity(ctx, f.selector())
	if err != nil {
		return 0, fmt.Errorf("read the pool's capacity: %w", err)
	}
	if n == 0 {
		return 0, nil
	}
	return max(n-int(f.counts.Running), 0), nil
}

// beat tells Temporal that the feeder lives.
func (f *feeder) beat(ctx context.Context) {
	if time.Since(f.lastBeat) > heartbeatGap {
		f.lastBeat = time.Now()
		activity.RecordHeartbeat(ctx, progress(f.state, f.counts))
	}
}

func (f *feeder) sweepIfDue(ctx context.Context) error {
	gap := sweepEvery
	if f.sweptTo != "" {
		gap = sweepPace
	}
	if time.Since(f.lastSweep) < gap {
		return nil
	}
	// What is not started when a feeder begins was claimed by one before it, which
	// has stopped or was killed. Should that one start it all the same, it starts once.
	unstarted := claimAge
	if f.firstSweep {
		unstarted = 0
	}
	var err error
	f.sweptTo, err = f.a.sweep(ctx, f.in, f.sweptTo, unstarted)
	f.firstSweep = f.firstSweep && f.sweptTo != ""
	f.lastSweep = time.Now()
	return err
}

func progress(state frontier.RunState, c frontier.Counts) workflows.Progress {
	return workflows.Progress{
		State: string(state), Accepted: c.Accepted, Queued: c.Queued, Running: c.Running, Waiting: c.Waiting,
		Completed: c.Completed, Failed: c.Failed, Skipped: c.Skipped, Canceled: c.Canceled, Bytes: c.Bytes,
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
