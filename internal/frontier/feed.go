package frontier

import (
	"context"
	"fmt"

	"holdfast/internal/crawl"
)

// TakeOver makes feeder the run's only feeder: lower numbers get ErrFenced from
// then on, and so does this call if a higher one is there.
func (s *Store) TakeOver(ctx context.Context, run string, feeder int64) error {
	if _, err := s.word(ctx, s.scripts.takeover, run, feeder); err != nil {
		return fmt.Errorf("take over %s: %w", run, err)
	}
	return nil
}

// Peek returns up to n hosts with queued URLs; over several calls each has its
// turn before one comes up again.
func (s *Store) Peek(ctx context.Context, run string, n int) ([]HostQueue, error) {
	l, err := s.list(ctx, s.scripts.peek, run, n)
	if err != nil {
		return nil, fmt.Errorf("peek %s: %w", run, err)
	}
	hosts := make([]HostQueue, 0, len(l)/3)
	for ; len(l) >= 3; l = l[3:] {
		hosts = append(hosts, HostQueue{Host: l[0], Queued: atoi(l[1]), Running: atoi(l[2])})
	}
	return hosts, nil
}

// Claim takes queued URLs for feeder, which must be the one that took over last
// (else ErrFenced); at most BatchSize a call. A run that is paused, canceling or over gives none. Claims
// that nobody heard of are found by OpenClaims.
func (s *Store) Claim(ctx context.Context, run string, feeder int64, quotas []HostQuota) ([]Claim, error) {
	args := make([]any, 0, 2+2*len(quotas))
	args = append(args, feeder, token())
	for _, q := range quotas {
		args = append(args, q.Host, q.N)
	}
	l, err := s.list(ctx, s.scripts.claim, run, args...)
	if err != nil {
		return nil, fmt.Errorf("claim from %s: %w", run, err)
	}
	return parseClaims(l)
}

func parseClaims(l []string) ([]Claim, error) {
	claims := make([]Claim, 0, len(l)/2)
	for ; len(l) >= 2; l = l[2:] {
		p, err := unpack(l[1])
		if err != nil {
			return nil, err
		}
		claims = append(claims, p.claim(l[0]))
	}
	return claims, nil
}

// MarkStarted notes the workflow runs of claims; one whose epoch is no longer the
// claim's is passed over.
func (s *Store) MarkStarted(ctx context.Context, run string, started []Started) error {
	for len(started) > 0 {
		n := min(len(started), BatchSize)
		args := make([]any, 0, 3*n)
		for _, st := range started[:n] {
			if err := plain("run id", st.RunID); err != nil {
				return fmt.Errorf("mark started: %w", err)
			}
			args = append(args, st.ID, st.Epoch, st.RunID)
		}
		if _, err := s.word(ctx, s.scripts.started, run, args...); err != nil {
			return fmt.Errorf("mark started in %s: %w", run, err)
		}
		started = started[n:]
	}
	return nil
}

// Requeue gives a claim back to the head of its host's queue; a no-op if the epoch
// is not, or no longer, that of the open claim.
func (s *Store) Requeue(ctx context.Context, run, id string, epoch int64) error {
	if _, err := s.word(ctx, s.scripts.requeue, run, id, epoch); err != nil {
		return fmt.Errorf("requeue in %s: %w", run, err)
	}
	return nil
}

// SkipQueued ends up to n queued URLs as skipped and returns them, so that the
// caller writes their records. A URL is returned again by later calls until an Ack
// as skipped confirms its record's file: a caller that dies in between loses none.
func (s *Store) SkipQueued(ctx context.Context, run string, reason crawl.Reason, n int) ([]Claim, error) {
	if n <= 0 {
		return nil, nil
	}
	if err := plain("reason", string(reason)); err != nil {
		return nil, fmt.Errorf("skip queued: %w", err)
	}
	l, err := s.list(ctx, s.scripts.skip, run, string(reason), n)
	if err != nil {
		return nil, fmt.Errorf("skip queued in %s: %w", run, err)
	}
	return parseClaims(l)
}

// OpenClaims returns up to n claims that have not ended, oldest first, starting
// after the position after ("" is the start). next is the position to go on from,
// "" at the end; a page may be short, or empty, and still have a next.
func (s *Store) OpenClaims(ctx context.Context, run, after string, n int) (claims []OpenClaim, next string, err error) {
	l, err := s.list(ctx, s.scripts.claims, run, atoi(after), n)
	if err != nil {
		return nil, "", fmt.Errorf("list claims of %s: %w", run, err)
	}
	if len(l) < 2 {
		return nil, "", fmt.Errorf("list claims of %s: short answer", run)
	}
	next, now := l[0], atoi(l[1])
	for l = l[2:]; len(l) >= 2; l = l[2:] {
		p, err := unpack(l[1])
		if err != nil {
			return nil, "", fmt.Errorf("list claims of %s: %w", run, err)
		}
		claims = append(claims, p.open(l[0], now))
	}
	return claims, next, nil
}
