package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// campaignListCommand lists every run that the frontier knows.
func (a *App) campaignListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List campaigns and their runs, newest first",
		Long:    "List every campaign's runs, newest first. It reads Redis only: no worker needs to run.",
		Example: a.examples("campaign list", "campaign list --output json"),
		Args:    args(),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			s, err := a.open(ctx, needRedis)
			if err != nil {
				return err
			}
			defer s.close()
			runs, err := s.frontier.Runs(ctx)
			if err != nil {
				return s.redisFailure(err)
			}
			newestFirst(runs)
			if a.json() {
				views := make([]RunView, len(runs))
				for i, r := range runs {
					views[i] = viewOf(r)
				}
				return a.printJSON(views)
			}
			if len(runs) == 0 {
				a.note("no campaign yet; start one: %s", a.command("campaign start --name NAME --urls FILE"))
				return nil
			}
			g := a.newGrid("run", "state", "accepted", "queued", "running", "waiting", "completed", "failed", "skipped", "canceled", "created")
			g.right(3, 4, 5, 6, 7, 8, 9, 10)
			for _, r := range runs {
				c := r.Counts
				g.row(r.Name(), a.paint(string(r.State)), c.Accepted, c.Queued, c.Running, c.Waiting,
					c.Completed, c.Failed, c.Skipped, c.Canceled, moment(r.Created))
			}
			g.print()
			return nil
		}),
	}
}
