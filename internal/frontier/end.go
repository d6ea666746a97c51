package frontier

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
)

// Park moves a running URL to waiting and counts a wait, or, with Wait 0, back to
// running. A URL that has ended or was given back stays what it is.
// Errors: ErrNoURL.
func (s *Store) Park(ctx context.Context, run string, p Parked) error {
	if p.Token == "" {
		p.Token = token()
	}
	if err := errors.Join(plain("why", string(p.Why)), plain("token", p.Token)); err != nil {
		return fmt.Errorf("park: %w", err)
	}
	ms := p.Wait.Milliseconds()
	if p.Wait > 0 && ms == 0 {
		ms = 1
	}
	if _, err := s.word(ctx, s.scripts.park, run, p.ID, p.Replay, string(p.Why), ms, short(p.Token)); err != nil {
		return fmt.Errorf("park in %s: %w", run, err)
	}
	return nil
}

// Ack ends a URL. The first for an (id, replay) wins and is counted; a later one
// gets First false and the confirmed file, and so does one whose reply was lost.
// One exception: a later ack of the same state confirms its file where there is
// none yet. Errors: ErrNoURL.
func (s *Store) Ack(ctx context.Context, run string, a Ack) (Acked, error) {
	args, err := a.args()
	if err != nil {
		return Acked{}, fmt.Errorf("ack: %w", err)
	}
	return parseAck(run, s.scripts.ack.Run(ctx, s.rdb, s.keys(run).all(), args...))
}

// AckOn queues an Ack on a pipeline. The function returned gives its result after
// Exec, whose own error may be this script's NOSCRIPT: then it runs the script again
// by itself.
func (s *Store) AckOn(ctx context.Context, p redis.Pipeliner, run string, a Ack) func(context.Context) (Acked, error) {
	args, err := a.args()
	if err != nil {
		return func(context.Context) (Acked, error) { return Acked{}, fmt.Errorf("ack: %w", err) }
	}
	cmd := s.scripts.ack.EvalSha(ctx, p, s.keys(run).all(), args...)
	return func(ctx context.Context) (Acked, error) {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return s.Ack(ctx, run, a)
		}
		return parseAck(run, cmd)
	}
}

func (a Ack) args() ([]any, error) {
	letter := endLetter(a.State)
	if letter == "" {
		return nil, fmt.Errorf("state %q is no end", a.State)
	}
	if err := errors.Join(plain("reason", string(a.Reason)), plain("file", a.File), plain("proxy", a.Proxy)); err != nil {
		return nil, err
	}
	return []any{
		a.ID, a.Replay, letter, string(a.Reason), a.File, a.Proxy,
		a.Bytes, a.WireBytes, a.Retries, a.ProxyFaults,
	}, nil
}

func parseAck(run string, cmd *redis.Cmd) (Acked, error) {
	l, err := cmd.StringSlice()
	if err == nil && len(l) > 0 {
		err = wordError(l[0])
	}
	if err != nil {
		return Acked{}, fmt.Errorf("ack in %s: %w", run, err)
	}
	if len(l) != 2 {
		return Acked{}, fmt.Errorf("ack in %s: short answer", run)
	}
	return Acked{First: l[0] == "first", File: l[1]}, nil
}

// RecordFiles returns the confirmed results file of each key, "" for none.
func (s *Store) RecordFiles(ctx context.Context, run string, keys []crawl.RecordKey) ([]string, error) {
	files := make([]string, 0, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), BatchSize)
		ids := make([]string, n)
		for i, k := range keys[:n] {
			ids[i] = k.ID
		}
		urls, err := s.urls(ctx, run, ids)
		if err != nil {
			return nil, fmt.Errorf("read record files of %s: %w", run, err)
		}
		for i, k := range keys[:n] {
			file := ""
			if p := urls[i]; p != nil && p.replay == k.Replay {
				file = p.file
			}
			files = append(files, file)
		}
		keys = keys[n:]
	}
	return files, nil
}
