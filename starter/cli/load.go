package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/frontier"
)

// progressEvery is the least time between two lines of a load's progress where
// standard error is no terminal.
const progressEvery = 5 * time.Second

// load reads the input a second time and adds it in numbered batches, those
// after the ones that are in already, then seals the run.
func (s *session) load(ctx context.Context, info frontier.RunInfo, in *seeds) (frontier.Added, error) {
	l := &loader{s: s, run: info.Name(), have: info.Batches, total: in.total}
	digest, err := in.each(func(e frontier.Entry) error { return l.add(ctx, e) })
	if err == nil {
		err = l.flush(ctx)
	}
	l.progress(true)
	switch {
	case err != nil && ctx.Err() != nil:
		return l.sum, interrupted("the same command", "%d of %d URLs of %s are loaded", l.read-len(l.batch), in.total, info.Name())
	case errors.Is(err, frontier.ErrSealed):
		return l.sum, nil // another starter of the same input was faster
	case errors.Is(err, frontier.ErrRunEnded):
		return l.sum, refused("run_ended", "see "+s.app.command("campaign status "+info.Name()), "%s was canceled while it was loading", info.Name())
	case err != nil:
		return l.sum, s.redisFailure(err)
	case digest != in.digest:
		return l.sum, badInput("restore the file and run the same command again, or end the run: "+s.app.command("campaign cancel "+info.Name()),
			"%s changed while it was read; %s stays open", in.label, info.Name())
	}
	if err := s.frontier.Seal(ctx, info.Name()); err != nil {
		if ctx.Err() != nil {
			return l.sum, interrupted("the same command", "%s is loaded but not closed", info.Name())
		}
		return l.sum, s.redisFailure(err)
	}
	return l.sum, nil
}

// loader sends entries in numbered batches.
type loader struct {
	s     *session
	run   string
	batch []frontier.Entry
	n     int // number of the last batch that was filled
	have  int // batches that an earlier starter loaded
	read  int
	total int
	sum   frontier.Added
	last  time.Time
}

func (l *loader) add(ctx context.Context, e frontier.Entry) error {
	l.batch = append(l.batch, e)
	l.read++
	if len(l.batch) < frontier.BatchSize {
		return nil
	}
	return l.flush(ctx)
}

func (l *loader) flush(ctx context.Context) error {
	if len(l.batch) == 0 {
		return nil
	}
	l.n++
	defer func() { l.batch = l.batch[:0] }()
	// A batch that is in answers the numbers it gave the first time.
	added, err := l.s.frontier.AddBatch(ctx, l.run, l.n, l.batch)
	if err != nil {
		return err
	}
	l.sum.Added += added.Added
	l.sum.Seen += added.Seen
	l.progress(false)
	return nil
}

// progress shows how far the load is, on standard error.
func (l *loader) progress(end bool) {
	a := l.s.app
	if a.opts.quiet || l.total <= frontier.BatchSize {
		return
	}
	now := a.env.Now()
	switch tty := a.env.IsTTY(a.env.Stderr); {
	case tty:
		_, _ = fmt.Fprintf(a.env.Stderr, "\r\x1b[Kloading %s: %d of %d URLs", l.run, l.read, l.total)
		if end {
			_, _ = fmt.Fprintln(a.env.Stderr)
		}
	case end || now.Sub(l.last) >= progressEvery:
		l.last = now
		a.note("loading %s: %d of %d URLs", l.run, l.read, l.total)
	}
}
