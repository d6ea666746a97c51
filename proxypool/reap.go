package proxypool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// reapChunk is how many leases one script call looks at.
const reapChunk = 200

// Reap ends every lease past its deadline: its slots are freed and a tombstone
// kept, no health sample is taken. It also drops tombstones, turns and pairs
// that have run out, a bounded number a call. Run it every few seconds, on as
// many workers as you like.
func (p *Pool) Reap(ctx context.Context) (n int, err error) {
	n, err = p.reap(ctx)
	if n > 0 {
		p.opts.Observer.Reaped(n)
	}
	return n, err
}

func (p *Pool) reap(ctx context.Context) (n int, err error) {
	total, err := p.rdb.LLen(ctx, p.keys[keyDeadlines]).Result()
	if err != nil {
		return 0, fmt.Errorf("reap leases: %w", err)
	}
	for looked := int64(0); ; {
		reply, err := p.run(ctx, p.scripts.reap, reapChunk, millis(p.opts.TombstoneKeep), millis(p.opts.TurnGrace)).StringSlice()
		if err != nil {
			return n, fmt.Errorf("reap leases: %w", err)
		}
		if len(reply) != 2 {
			return n, fmt.Errorf("reap leases: %w", ErrReply)
		}
		reaped, errR := strconv.Atoi(reply[0])
		seen, errS := strconv.ParseInt(reply[1], 10, 64)
		if errR != nil || errS != nil {
			return n, fmt.Errorf("reap leases: %w", ErrReply)
		}
		n += reaped
		looked += seen
		if seen == 0 || looked >= total {
			return n, nil
		}
	}
}

// Reconcile puts leases back into the queue of deadlines that it has lost, drops
// entries whose lease has ended, and counts again what is in use of each proxy and
// open at each host. It returns the number of things put right. Run it every few
// minutes; it reads all open leases, and proxies and hosts bit by bit.
func (p *Pool) Reconcile(ctx context.Context) (repaired int, err error) {
	queued, err := p.requeue(ctx)
	if err != nil {
		return queued, err
	}
	if _, err = p.Reap(ctx); err != nil {
		return queued, err
	}
	counted, err := p.recount(ctx)
	repaired = queued + counted
	if repaired > 0 {
		p.opts.Observer.Repaired(repaired)
	}
	return repaired, err
}

func (p *Pool) requeue(ctx context.Context) (repaired int, err error) {
	// The leases first: each was queued when it was granted, so one that is not
	// found in the queue read afterwards has ended, or is missing there.
	ids, err := p.rdb.HKeys(ctx, p.keys[keyLeases]).Result()
	if err != nil {
		return 0, fmt.Errorf("reconcile leases: %w", err)
	}
	entries, err := p.rdb.LRange(ctx, p.keys[keyDeadlines], 0, -1).Result()
	if err != nil {
		return 0, fmt.Errorf("reconcile leases: %w", err)
	}
	queued := make(map[string]bool, len(entries))
	for _, e := range entries {
		_, id, _ := strings.Cut(e, " ")
		queued[id] = true
	}
	missing := slices.DeleteFunc(ids, func(id string) bool { return queued[id] })
	slices.Sort(missing)
	for chunk := range slices.Chunk(missing, reapChunk) {
		args := make([]any, len(chunk))
		for i, id := range chunk {
			args[i] = id
		}
		n, err := p.run(ctx, p.scripts.repair, args...).Int()
		if err != nil {
			return repaired, fmt.Errorf("reconcile leases: %w", err)
		}
		repaired += n
	}
	return repaired, nil
}
