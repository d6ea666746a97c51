package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/results"
)

// resultsCommand holds the commands on what was fetched.
func (a *App) resultsCommand() *cobra.Command {
	return a.group("results", "Show where results are, follow them, print a page",
		"Results belong to the worker, which registers where it writes them (--results). These commands open that\n"+
			"place if it is a folder of this machine, and say where it is otherwise.",
		[]string{"results path docs", "results show docs https://example.org/page"},
		a.resultsPathCommand(), a.resultsTailCommand(), a.resultsShowCommand())
}

// withSink opens a run and the folder of its results.
func (a *App) withSink(ctx context.Context, name string, fn func(s *session, run frontier.RunInfo, dir string) error) error {
	s, err := a.open(ctx, needRedis)
	if err != nil {
		return err
	}
	defer s.close()
	run, err := s.resolve(ctx, name)
	if err != nil {
		return err
	}
	dir, err := s.sinkDir(ctx)
	if err != nil {
		return err
	}
	return fn(s, run, dir)
}

// resultsPathCommand prints a run's folder.
func (a *App) resultsPathCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "path NAME",
		Short:   "Print the folder of a campaign's results",
		Long:    "Print the folder that holds the records and bodies of a campaign's latest run (or of the run named).",
		Example: a.examples("results path docs", "results path docs-1 --output json"),
		Args:    args("a campaign's name"),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, given []string) error {
			return a.withSink(ctx, given[0], func(_ *session, run frontier.RunInfo, dir string) error {
				path := results.RunDir(dir, run.Campaign, run.Run)
				if a.json() {
					return a.printJSON(map[string]string{"name": run.Name(), "path": path})
				}
				a.printf("%s\n", path)
				return nil
			})
		}),
	}
}

// resultsTailCommand prints the newest records and follows them.
func (a *App) resultsTailCommand() *cobra.Command {
	var last int
	var follow, failures bool
	cmd := &cobra.Command{
		Use:     "tail NAME",
		Short:   "Print a campaign's newest records as JSON lines",
		Long:    "Print the newest records of a campaign's latest run (or of the run named) as JSON lines, and with --follow\nthose that are written while it runs.",
		Example: a.examples("results tail docs", "results tail docs -n 100 --failures", "results tail docs --follow"),
		Args:    args("a campaign's name"),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, given []string) error {
			if last < 0 {
				return usage(helpHint(cmd), "--lines is %d; it cannot be negative", last)
			}
			return a.withSink(ctx, given[0], func(_ *session, run frontier.RunInfo, dir string) error {
				stream := results.Pages
				if failures {
					stream = results.Failures
				}
				options := results.TailOptions{Last: last, Follow: follow, Every: a.env.Every}
				for r, err := range results.Tail(ctx, dir, run.Campaign, run.Run, stream, options) {
					if err != nil {
						return err
					}
					if err := a.printJSON(r); err != nil {
						return err
					}
				}
				if follow && ctx.Err() != nil {
					return interrupted(a.command("results tail --follow "+run.Name()), "%s goes on by itself", run.Name())
				}
				return nil
			})
		}),
	}
	cmd.Flags().IntVarP(&last, "lines", "n", 10, "records to begin with")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written, until Ctrl-C")
	cmd.Flags().BoolVar(&failures, "failures", false, "failed, skipped and canceled URLs instead of pages")
	return cmd
}

// resultsShowCommand prints a page, decoded.
func (a *App) resultsShowCommand() *cobra.Command {
	var record bool
	var method string
	cmd := &cobra.Command{
		Use:     "show NAME URL",
		Short:   "Print a page of a campaign, decoded, or its record",
		Long:    "Print the body of a URL of a campaign as it was fetched, decoded; with --record (or --output json) its record.",
		Example: a.examples("results show docs https://example.org/page > page.html", "results show docs https://example.org/page --record"),
		Args:    args("a campaign's name", "a URL"),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, given []string) error {
			entry, err := entryOf(crawl.Request{URL: given[1], Method: method})
			if err != nil {
				return badURL(given[1], err)
			}
			return a.withSink(ctx, given[0], func(s *session, run frontier.RunInfo, dir string) error {
				u, err := s.frontier.URL(ctx, run.Name(), entry.ID)
				if errors.Is(err, frontier.ErrNoURL) {
					return refused("no_url", "give the URL as it stands in the list", "%s does not know %s", run.Name(), oneLine(given[1]))
				}
				if err != nil {
					return s.redisFailure(err)
				}
				if !u.State.Terminal() {
					return failed("not_ended", "watch it: "+a.command("campaign watch "+run.Name()), "%s is %s", oneLine(given[1]), u.State)
				}
				r, err := findRecord(dir, run, u)
				if err != nil {
					return err
				}
				if r == nil {
					return failed("no_record", "its attempts: "+a.command("explain "+given[1]+" --campaign "+run.Name()),
						"no record of %s is in %s", oneLine(given[1]), results.RunDir(dir, run.Campaign, run.Run))
				}
				if record || a.json() {
					return a.printJSON(r)
				}
				return writeBody(dir, r, a.env.Stdout)
			})
		}),
	}
	cmd.Flags().BoolVar(&record, "record", false, "print the record instead of the page")
	cmd.Flags().StringVar(&method, "method", "", "the request's method (default GET)")
	return cmd
}
