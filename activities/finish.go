package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/proxypool"
	"holdfast/workflows"
)

// Finish ends one pass, in this order: the record (a terminal decision only), the
// release with its health sample, the ack or the parking. Each part does nothing
// when it was done before, so that a Finish may run any number of times.
func (a *Activities) Finish(ctx context.Context, in workflows.FinishInput) error {
	state, terminal := in.Decision.State()
	var (
		file   string
		record crawl.Record
		err    error
	)
	if terminal {
		if record, err = a.record(ctx, in, state); err == nil {
			file, err = a.place(ctx, in.Outcome, record)
		}
		if err != nil {
			// A full disk must not hold the proxy back as well.
			return errors.Join(err, a.releaseOnly(ctx, in))
		}
	}
	pipe := a.Redis.Pipeline()
	released := a.queueRelease(ctx, pipe, in)
	acked := a.queueAck(ctx, pipe, in, state, terminal, file)
	if pipe.Len() > 0 {
		// Each result below carries its own error; NOSCRIPT is repaired there.
		_, _ = pipe.Exec(ctx)
	}
	if err := errors.Join(released(ctx), acked(ctx, a, record)); err != nil {
		return fmt.Errorf("finish %s: %w", in.LeaseID, err)
	}
	return nil
}

// releaseOnly gives the lease back before the record is written.
func (a *Activities) releaseOnly(ctx context.Context, in workflows.FinishInput) error {
	pipe := a.Redis.Pipeline()
	released := a.queueRelease(ctx, pipe, in)
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx)
	}
	return released(ctx)
}

// place writes the record. Where this process did not make the exchange itself,
// another may have ended the URL, in a task that was lost or refused: then its
// line stands, and there is not for a moment a second one.
func (a *Activities) place(ctx context.Context, o crawl.Outcome, r crawl.Record) (string, error) {
	if o.Exchanged() && o.Worker == a.Worker {
		return a.write(ctx, r)
	}
	files, err := a.Frontier.RecordFiles(ctx, crawl.RunName(r.Campaign, r.Run), []crawl.RecordKey{r.Key()})
	switch {
	case err != nil:
		return "", fmt.Errorf("look up record: %w", err)
	case len(files) == 1 && files[0] != "":
		return files[0], nil
	}
	return a.write(ctx, r)
}

// write appends the record, once in this process.
func (a *Activities) write(ctx context.Context, r crawl.Record) (string, error) {
	key := keyOf(r)
	if file := a.pages.file(key); file != "" {
		return file, nil
	}
	file, err := a.Sink.Append(ctx, r)
	if err != nil {
		return "", fmt.Errorf("write record: %w", err)
	}
	a.pages.wrote(key, r, file)
	return file, nil
}

// queueRelease queues the lease's release, where the pass had a lease or nobody knows.
func (a *Activities) queueRelease(ctx context.Context, pipe redis.Pipeliner, in workflows.FinishInput) func(context.Context) error {
	o := in.Outcome
	if !o.Held && o.Class == crawl.Deferred && o.Why != crawl.WaitRedis {
		return func(context.Context) error { return nil }
	}
	releases := []func(context.Context) (proxypool.Released, error){
		a.Pool.ReleaseOn(ctx, pipe, proxypool.ReleaseRequest{LeaseID: in.LeaseID, Verdict: crawl.VerdictOf(o)}),
	}
	if brokeOff(o) {
		// Perhaps while it read robots.txt.
		releases = append(releases, a.Pool.ReleaseOn(ctx, pipe, proxypool.ReleaseRequest{
			LeaseID: crawl.RobotsLease(in.LeaseID), Verdict: crawl.Verdict{Proxy: crawl.ProxyNeutral},
		}))
	}
	return func(ctx context.Context) error {
		var errs error
		for _, release := range releases {
			_, err := release(ctx)
			errs = errors.Join(errs, err)
		}
		return errs
	}
}

// brokeOff reports a pass that ended somewhere on its way, nobody knows where.
func brokeOff(o crawl.Outcome) bool {
	switch o.Class {
	case crawl.Deferred, crawl.Ended, crawl.HandedOn, crawl.Canceled:
		return o.Requests == 0
	}
	return false
}

// queueAck queues the URL's end, or its parking until its timer fires.
func (a *Activities) queueAck(ctx context.Context, pipe redis.Pipeliner, in workflows.FinishInput, state crawl.State, terminal bool, file string) func(context.Context, *Activities, crawl.Record) error {
	run := in.Task.RunName()
	if !terminal {
		return func(ctx context.Context, a *Activities, _ crawl.Record) error {
			if in.Decision.Delay <= 0 {
				return nil
			}
			return a.Frontier.Park(ctx, run, frontier.Parked{
				ID: in.Task.ID, Replay: in.Task.Replay, Why: in.Decision.Why, Wait: in.Decision.Delay, Token: in.LeaseID,
			})
		}
	}
	ack := a.Frontier.AckOn(ctx, pipe, run, frontier.Ack{
		ID: in.Task.ID, Replay: in.Task.Replay, State: state, Reason: in.Decision.Reason, File: file,
		Proxy: in.Outcome.Proxy, Bytes: in.Outcome.Bytes, WireBytes: in.Outcome.WireBytes,
		Retries: max(len(in.Attempts)-1, 0), ProxyFaults: in.Ledgers.ProxyFaults,
	})
	return func(ctx context.Context, a *Activities, r crawl.Record) error {
		acked, err := ack(ctx)
		if err != nil {
			return err
		}
		return a.settleRecord(ctx, r, file, acked)
	}
}

// record builds the URL's line.
func (a *Activities) record(ctx context.Context, in workflows.FinishInput, state crawl.State) (crawl.Record, error) {
	page, err := a.page(ctx, in)
	if err != nil {
		return crawl.Record{}, err
	}
	t, o := in.Task, in.Outcome
	r := crawl.Record{
		Schema: crawl.RecordSchema, Campaign: t.Campaign, Run: t.Run, Replay: t.Replay, ID: t.ID,
		URL: t.URL, Method: t.EffectiveMethod(), Parent: t.Parent, Depth: t.Depth,
		State: state, Rule: o.Rule, Status: o.Status, Unchanged: o.Status == 304, Attempts: in.Attempts,
		FinalURL: page.FinalURL, Redirects: page.Redirects, Headers: page.Headers,
		ContentType: page.ContentType, Charset: page.Charset, Body: page.Body,
		Bytes: o.Bytes, WireBytes: o.WireBytes, SHA256: o.SHA256,
		Accepted: crawl.Stamp(t.AcceptedMS), Ended: crawl.Stamp(in.EndedMS),
		WorkflowID: t.WorkflowID(), RunID: in.RunID,
	}
	if r.Attempts == nil {
		r.Attempts = []crawl.Attempt{}
	}
	if in.Decision.Reason != "" {
		r.Reason = &in.Decision.Reason
	}
	if t.Extras {
		extra, err := a.Frontier.Extras(ctx, t.RunName(), t.ID)
		if err != nil {
			return crawl.Record{}, fmt.Errorf("read meta: %w", err)
		}
		r.Meta = extra.Meta
	}
	return r, nil
}

// page returns what the URL's last exchange learnt.
func (a *Activities) page(ctx context.Context, in workflows.FinishInput) (crawl.Page, error) {
	switch o := in.Outcome; {
	case o.Exchanged(), o.Class == crawl.RobotsDenied && o.Requests > 0:
		return a.pageOf(ctx, in.LeaseID)
	case in.Trail != "":
		return a.pageOf(ctx, in.Trail)
	}
	return crawl.Page{}, nil
}

// pageOf returns what was learnt under a lease: from memory, or after a crash
// between two steps from the lease's record.
func (a *Activities) pageOf(ctx context.Context, lease string) (crawl.Page, error) {
	if p := a.pages.get(lease); p != nil {
		return *p, nil
	}
	blob, err := a.Pool.Committed(ctx, lease)
	if err != nil {
		return crawl.Page{}, fmt.Errorf("read committed page: %w", err)
	}
	var c crawl.Committed
	if len(blob) > 0 {
		if err := json.Unmarshal(blob, &c); err != nil {
			return crawl.Page{}, fmt.Errorf("read committed page: %w", err)
		}
	}
	if c.Page == nil {
		return crawl.Page{}, nil
	}
	return *c.Page, nil
}
