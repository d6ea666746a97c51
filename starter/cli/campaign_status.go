package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/frontier"
)

// shownWaits is the number of groups of waiting URLs that status and watch show.
const shownWaits = 8

// campaignStatusCommand shows one run. It reads Redis only.
func (a *App) campaignStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status NAME",
		Short: "Show a campaign's counts and what its URLs wait for",
		Long: "Show the counts of a campaign's latest run (or of the run named) and what its URLs wait for.\n" +
			"The counts add up to the accepted URLs at any moment. It reads Redis only: no worker needs to run.",
		Example: a.examples("campaign status docs", "campaign status docs-1 --output json"),
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
			view, err := s.look(ctx, run.Name())
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(view)
			}
			a.printStatus(view, run)
			return nil
		}),
	}
}

// look reads a run and what it waits for.
func (s *session) look(ctx context.Context, run string) (RunView, error) {
	info, err := s.frontier.Run(ctx, run)
	if err != nil {
		return RunView{}, s.redisFailure(err)
	}
	v := viewOf(info)
	if info.State != frontier.RunFinished && info.State != frontier.RunCanceled {
		if v.WaitsFor, err = s.frontier.Waiting(ctx, run); err != nil {
			return v, s.redisFailure(err)
		}
		v.WaitsFor = v.WaitsFor[:min(len(v.WaitsFor), shownWaits)]
	}
	return v, nil
}

func (a *App) printStatus(v RunView, run frontier.RunInfo) {
	a.printf("%s  %s\n", v.Name, a.paint(string(v.State)))
	a.printf("  input %s, created %s", dash(oneLine(v.Input)), moment(run.Created))
	if !run.Ended.IsZero() {
		a.printf(", ended %s after %s", moment(run.Ended), span(run.Ended.Sub(run.Created)))
	}
	a.printf("\n\n")
	a.printCounts(v.Counts)
	for _, w := range v.WaitsFor {
		a.printf("  %s\n", a.waitLine(w))
	}
	if v.State == frontier.RunLoading {
		a.printf("  the input is not loaded to its end; go on with the command that started it\n")
	}
}

func (a *App) printCounts(c frontier.Counts) {
	g := a.newGrid("accepted", "queued", "running", "waiting", "completed", "failed", "skipped", "canceled", "retries", "proxy faults", "waits", "bytes")
	g.right(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	g.row(c.Accepted, c.Queued, c.Running, c.Waiting, c.Completed, c.Failed, c.Skipped, c.Canceled, c.Retries, c.ProxyFaults, c.Waits, size(c.Bytes))
	g.print()
}

// waitLine is a group of waiting URLs for people: "412 URLs wait for example.org
// (Retry-After), until 14:05:00".
func (a *App) waitLine(w frontier.WaitGroup) string {
	line := fmt.Sprintf("%d URLs wait for %s (%s)", w.URLs, oneLine(or(w.Host, "a turn")), w.Why)
	if w.URLs == 1 {
		line = fmt.Sprintf("1 URL waits for %s (%s)", oneLine(or(w.Host, "a turn")), w.Why)
	}
	if w.Until.After(a.env.Now()) {
		until := w.Until.Local().Format(time.TimeOnly)
		if w.Until.Sub(a.env.Now()) > 20*time.Hour {
			until = moment(w.Until)
		}
		line += ", until " + until
	}
	return line
}
