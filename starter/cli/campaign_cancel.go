package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"holdfast/internal/frontier"
)

// campaignCancelCommand cancels a run: what was fetched stays.
func (a *App) campaignCancelCommand() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "cancel NAME",
		Short: "Cancel a campaign: running fetches stop, what was fetched stays",
		Long: "Cancel a campaign's open run. Running fetches are aborted and their proxies given back, URLs that were\n" +
			"never asked become skipped, and what was fetched stays. It cannot be taken back.",
		Example: a.examples("campaign cancel docs", "campaign cancel docs-2 --yes --wait"),
		Args:    args("a campaign's name"),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, given []string) error {
			s, err := a.open(ctx, needAll)
			if err != nil {
				return err
			}
			defer s.close()
			run, err := s.resolve(ctx, given[0])
			if err != nil {
				return err
			}
			return s.cancel(ctx, run, wait)
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until nothing of it runs")
	return cmd
}

func (s *session) cancel(ctx context.Context, run frontier.RunInfo, wait bool) error {
	over := refused("run_ended", "", "%s is %s already", run.Name(), run.State)
	if run.State == frontier.RunFinished || run.State == frontier.RunCanceled {
		return over
	}
	c := run.Counts
	if err := s.app.confirm(fmt.Sprintf("Cancel %s? %d URLs are done, %d run or wait, %d are queued.",
		run.Name(), c.Done(), c.Open(), c.Queued)); err != nil {
		return err
	}
	// The flag first: workers see it within a second, whatever becomes of the rest.
	if err := s.frontier.Cancel(ctx, run.Name()); errors.Is(err, frontier.ErrRunEnded) {
		return over
	} else if err != nil {
		return s.redisFailure(err)
	}
	err := s.temporal.CancelWorkflow(ctx, run.Name(), "")
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		// Its starter died before the workflow began: nothing runs that could end the run.
		if err := s.startWorkflow(ctx, run); err != nil {
			return err
		}
	case err != nil:
		return s.app.temporalFailure(s.target, "cancel campaign workflow", err)
	}
	if wait {
		var last RunView
		if err := s.watchUntil(ctx, run.Name(), s.app.env.Stderr, &last); err != nil {
			return err
		}
		if s.app.json() {
			return s.app.printJSON(last)
		}
		s.app.printf("%s is %s\n", run.Name(), last.State)
		return nil
	}
	if s.app.json() {
		return s.app.printJSON(map[string]any{"name": run.Name(), "state": frontier.RunCanceling})
	}
	s.app.printf("%s is being canceled\n", run.Name())
	return nil
}

// confirm asks before something that cannot be undone: on a terminal; elsewhere
// --yes is needed.
func (a *App) confirm(question string) error {
	if a.opts.yes {
		return nil
	}
	if !a.env.IsTTY(a.env.Stdin) {
		return usage("give --yes", "this cannot be undone, and there is no terminal to ask on")
	}
	_, _ = fmt.Fprintf(a.env.Stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.env.Stdin).ReadString('\n')
	if err != nil && answer == "" {
		return refused("not_confirmed", "", "not confirmed: nothing was changed")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return refused("not_confirmed", "", "not confirmed: nothing was changed")
}
