package main

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/starter/cli"
)

// crawlCommand starts everything, crawls a list, and stops.
func (p *program) crawlCommand() *cobra.Command {
	flags := &stackFlags{}
	var crawl *cli.Crawl
	cmd := &cobra.Command{
		Use:   "crawl --urls FILE|- [--proxies FILE|-]",
		Short: "Crawl a list of URLs with everything in this process",
		Long: "Start everything in this process, crawl a list of URLs, print a summary and stop. Run again after it was\n" +
			"killed or interrupted, the same command goes on where it was; once finished it prints the summary.",
		Example: "  " + p.env.Name + " crawl --urls urls.txt --proxies proxies.txt --contact https://example.org/bot\n" +
			"  " + p.env.Name + " crawl --urls urls.txt --direct --contact you@example.org --out pages",
		Args: cobra.NoArgs,
		RunE: p.app.RunE(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			defer crawl.Close()
			if err := crawl.Prepare(ctx, cmd); err != nil {
				return err
			}
			s, err := start(ctx, p.options(flags))
			if err != nil {
				return err
			}
			p.running = s
			if s.ui != "" {
				p.note("Web UI: %s", s.ui)
			}
			err = crawl.Run(ctx, "the same command")
			if ctx.Err() != nil {
				p.note("stopping: fetches under way may end; Ctrl-C again stops at once")
			} else if err == nil {
				p.note("results: %s", s.results)
			}
			if stopErr := s.stop(); err == nil {
				err = stopErr
			}
			return err
		}),
	}
	crawl = p.app.Crawl(cmd)
	flags.register(cmd, "out")
	return cmd
}
