package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"holdfast/proxypool"
)

// renewEvery is how often a held lease is renewed, and how late its holder
// learns that it shall stop (semantics: at least every 3 s).
const renewEvery = 3 * time.Second

// hold keeps a lease alive while its exchange runs. Its context ends, with the
// cause, when the lease is lost, when somebody asks for an abort, or when the
// lease can no longer be trusted because Redis does not answer.
type hold struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	grant  *proxypool.Grant
	// since is when the host's turn was taken.
	since time.Time
	done  chan struct{}

	mu       sync.Mutex
	deadline time.Time
	trust    *time.Timer
}

func (p *pass) hold(ctx context.Context, grant *proxypool.Grant) *hold {
	h := &hold{grant: grant, since: time.Now(), done: make(chan struct{}), deadline: grant.Deadline}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	// A timer of its own: a call to a Redis that is away may last past the deadline.
	h.trust = time.AfterFunc(time.Until(grant.Deadline), func() { h.cancel(errStale) })
	go h.renew(p.a.Pool)
	return h
}

// letGo ends the renewing and waits until it has ended.
func (h *hold) letGo() {
	h.cancel(nil)
	h.trust.Stop()
	<-h.done
}

func (h *hold) trustedUntil() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

// extend trusts the lease until a later deadline.
func (h *hold) extend(deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if deadline.After(h.deadline) && h.trust.Stop() {
		h.deadline = deadline
		h.trust.Reset(time.Until(deadline))
	}
}

func (h *hold) renew(pool Leaser) {
	defer close(h.done)
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
		}
		activity.RecordHeartbeat(h.ctx)
		ctx, cancel := context.WithTimeout(h.ctx, renewEvery)
		renewed, err := pool.Renew(ctx, h.grant.LeaseID, h.grant.Fence)
		cancel()
		switch {
		case errors.Is(err, proxypool.ErrStale):
			h.cancel(errStale)
		case err != nil: // Redis is away: the lease is trusted until its deadline
		case renewed.Abort:
			h.cancel(errAborted)
		default:
			h.extend(renewed.Deadline)
		}
	}
}
