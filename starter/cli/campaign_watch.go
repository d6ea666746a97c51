package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// campaignWatchCommand follows a run to its end. It reads Redis only.
func (a *App) campaignWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow a campaign: done of accepted, rate, ETA, what it waits for",
		Long: "Follow a campaign's latest run (or the run named) to its end: a progress bar on a terminal, a line when\n" +
			"something changed otherwise, JSON lines with --output json. It reads Redis only: no worker needs to run.\n" +
			"Ctrl-C ends the watching, not the campaign.",
		Example: a.examples("campaign watch docs", "campaign watch docs-2 --output json"),
		Args:    args("a campaign's name"),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, given []string) error {
			s, err := a.open(ctx, needRedis)
			if err != nil {
				return err
			}
			defer s.close()
			run, err := s.resolve(ctx, given[0])
			if err != nil {
				return err
			}
			if a.json() {
				return s.watchUntil(ctx, run.Name(), a.env.Stdout, nil)
			}
			var last RunView
			if err := s.watchUntil(ctx, run.Name(), a.env.Stdout, &last); err != nil {
				return err
			}
			return s.printFailureCounts(ctx, last)
		}),
	}
}

// Summary is a run at its end.
type Summary struct {
	RunView
	Failures map[crawl.Reason]int64 `json:"failures"`
}

// watchToEnd watches a run on standard error until its results are closed, and
// prints its summary; a run in which nothing succeeded is exit 1.
func (s *session) watchToEnd(ctx context.Context, run string) error {
	var last RunView
	if err := s.watchUntil(ctx, run, s.app.env.Stderr, &last); err != nil {
		return err
	}
	if err := s.awaitClose(ctx, run); err != nil {
		return err
	}
	return s.summary(ctx, last)
}

// closeSoon is how long closing the results may take without a word.
const closeSoon = 5 * time.Second

// awaitClose returns when the run's workflow has closed. The frontier says that
// every URL has ended; only then does the workflow clean the record files of what
// killed workers left in them, and whoever stops the services earlier keeps that.
func (s *session) awaitClose(ctx context.Context, run string) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		// How it closed is not asked: the frontier has told how the run ended.
		_ = s.temporal.GetWorkflow(ctx, run, "").Get(ctx, nil)
	}()
	select {
	case <-closed:
	case <-time.After(closeSoon):
		s.app.note("every URL of %s has ended; waiting for a worker to close its results", run)
		<-closed
	}
	if ctx.Err() != nil {
		return interrupted(s.app.command("campaign watch "+run), "the results of %s are closed by themselves", run)
	}
	return nil
}

// summary prints how a run ended.
func (s *session) summary(ctx context.Context, v RunView) error {
	if s.app.json() {
		reasons, err := s.frontier.FailureCounts(ctx, v.Name)
		if err != nil {
			return s.redisFailure(err)
		}
		if err := s.app.printJSON(Summary{RunView: v, Failures: reasons}); err != nil {
			return err
		}
	} else {
		s.app.printf("%s %s\n\n", v.Name, s.app.paint(string(v.State)))
		s.app.printCounts(v.Counts)
		if err := s.printFailureCounts(ctx, v); err != nil {
			return err
		}
	}
	if v.Completed == 0 && v.Accepted > 0 {
		return failed("nothing_succeeded", "see "+s.app.command("failures list "+v.Name), "no URL of %s succeeded", v.Name)
	}
	return nil
}

// watchUntil shows a run on w until it has ended; last, if not nil, gets its last view.
// With --quiet it only waits.
func (s *session) watchUntil(ctx context.Context, run string, w io.Writer, last *RunView) error {
	v := s.app.newViewer(w)
	tick := time.NewTicker(s.app.env.Every)
	defer tick.Stop()
	for {
		view, err := s.look(ctx, run)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			over := view.State == frontier.RunFinished || view.State == frontier.RunCanceled
			if err := v.show(&view, over); err != nil {
				return err
			}
			if over {
				if last != nil {
					*last = view
				}
				return nil
			}
		}
		select {
		case <-ctx.Done():
			v.leave()
			return interrupted(s.app.command("campaign watch "+run), "%s goes on by itself", run)
		case <-tick.C:
		}
	}
}
