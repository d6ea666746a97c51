package proxypool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Renew extends the lease by one TTL from now, but not past its proxy's end, if
// it is held under this fence and has not expired; else ErrStale.
func (p *Pool) Renew(ctx context.Context, leaseID string, fence int64) (Renewal, error) {
	sent := time.Now()
	reply, err := p.run(ctx, p.scripts.renew, leaseID, fence, millis(p.opts.TTL)).StringSlice()
	if err != nil {
		return Renewal{}, fmt.Errorf("renew lease: %w", err)
	}
	if len(reply) == 1 && reply[0] == "stale" {
		return Renewal{}, ErrStale
	}
	if len(reply) != 4 {
		return Renewal{}, fmt.Errorf("renew lease: %w", ErrReply)
	}
	closed, err := parseMillis(reply[2])
	if err != nil {
		return Renewal{}, fmt.Errorf("renew lease: %w", err)
	}
	left, err := parseMillis(reply[3])
	if err != nil {
		return Renewal{}, fmt.Errorf("renew lease: %w", err)
	}
	return Renewal{Deadline: p.deadline(sent, left), Abort: reply[1] == "1", NotBefore: closed}, nil
}

// Hop moves the lease to another host, for a redirect: the new host's turn is
// taken and the old host's slot freed. A Wait leaves the lease where it was (and
// extends it) and keeps the turn for the claimant; its reasons are those of
// Acquire. The same host again is a grant that charges nothing. Errors: ErrStale,
// ErrRequest, or Redis did not answer.
func (p *Pool) Hop(ctx context.Context, leaseID string, fence int64, claimant, host string, limits HostLimits) (Acquired, error) {
	if err := errors.Join(checkField("claimant", claimant), checkHost(host)); err != nil {
		return Acquired{}, err
	}
	sent := time.Now()
	reply, err := p.run(ctx, p.scripts.hop, leaseID, fence, claimant, host,
		millis(limits.Interval), max(limits.Concurrency, 0), millis(p.opts.TTL), millis(p.opts.TurnGrace)).StringSlice()
	if err != nil {
		return Acquired{}, fmt.Errorf("move lease: %w", err)
	}
	a, err := p.acquired(leaseID, "", sent, reply)
	if err != nil {
		return Acquired{}, fmt.Errorf("move lease: %w", err)
	}
	return a, nil
}

// Commit stores an ended exchange's outcome under the lease. It needs the
// current fence (ErrStale); the first outcome stays, and committing again is
// fine, even after the lease has ended.
func (p *Pool) Commit(ctx context.Context, leaseID string, fence int64, outcome []byte) error {
	reply, err := p.run(ctx, p.scripts.commit, leaseID, fence, outcome).StringSlice()
	if err != nil {
		return fmt.Errorf("commit outcome: %w", err)
	}
	if len(reply) == 1 && reply[0] == "ok" {
		return nil
	}
	return ErrStale
}

// Abort asks the holder of a lease to stop: it learns so from its next Renew. A
// lease that is not open is left as it is.
func (p *Pool) Abort(ctx context.Context, leaseID string) error {
	if err := p.run(ctx, p.scripts.abort, leaseID).Err(); err != nil {
		return fmt.Errorf("abort lease: %w", err)
	}
	return nil
}

// Committed returns what was committed under a lease, nil for nothing.
func (p *Pool) Committed(ctx context.Context, leaseID string) ([]byte, error) {
	b, err := p.rdb.HGet(ctx, p.keys[keyOutcomes], leaseID).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read outcome: %w", err)
	}
	return b, nil
}
