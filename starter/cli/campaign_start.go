package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// campaignStartCommand starts a run of a campaign, or goes on with one whose
// starter was killed.
func (a *App) campaignStartCommand() *cobra.Command {
	var urls, name string
	var newRun, wait bool
	flags := &specFlags{}
	cmd := &cobra.Command{
		Use:   "start --name NAME --urls FILE|-",
		Short: "Start a campaign over a list of URLs",
		Long: "Start a campaign over a list of URLs: one a line, or JSON lines with url, method, headers, body, key and\n" +
			"meta. The whole list is checked first; with one bad line nothing is written. Run again after it was\n" +
			"interrupted, the same command goes on.\n\n" +
			"Targets off this machine need --contact; a campaign without --direct needs proxies (see proxies import).",
		Example: a.examples(
			"campaign start --name docs --urls urls.txt --contact https://example.org/bot",
			"campaign start --name docs --urls urls.txt --new-run --wait --delay 500ms --per-host 4",
			"campaign start --name mirror --urls - --direct --contact you@example.org < urls.jsonl",
			"campaign start --name eu --urls urls.txt --tag residential --region de --contact you@example.org"),
		Args: args(),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			st, err := a.readStart(ctx, cmd, flags, name, urls)
			if err != nil {
				return err
			}
			defer st.seeds.close()
			st.newRun = newRun
			s, err := a.open(ctx, needAll)
			if err != nil {
				return err
			}
			defer s.close()
			started, err := s.start(ctx, st)
			if err != nil {
				return err
			}
			s.warnNoWorkers(ctx)
			if !wait {
				return a.printStarted(started)
			}
			a.note("%s", a.startedLine(started))
			return s.watchToEnd(ctx, started.Name)
		}),
	}
	cmd.Flags().StringVar(&urls, "urls", "", "list of URLs; - for standard input")
	cmd.Flags().StringVar(&name, "name", "", "the campaign's name")
	cmd.Flags().BoolVar(&newRun, "new-run", false, "crawl again though the latest run has ended")
	cmd.Flags().BoolVar(&wait, "wait", false, "watch until the end; exit 1 if nothing succeeded")
	flags.register(cmd)
	return cmd
}

// readStart checks flags and input to the end; it contacts nothing and writes nothing.
func (a *App) readStart(ctx context.Context, cmd *cobra.Command, flags *specFlags, name, urls string) (*start, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	spec, err := flags.spec(cmd, name, a.contact())
	if err != nil {
		return nil, err
	}
	if urls == "" {
		return nil, usage("give a file with one URL a line, or - for standard input", "%s needs --urls", cmd.CommandPath())
	}
	in, err := a.readSeeds(ctx, urls)
	if err != nil {
		return nil, err
	}
	st := &start{spec: spec, seeds: in}
	if err := a.prepare(st); err != nil {
		in.close()
		return nil, err
	}
	return st, nil
}

func (a *App) startedLine(s Started) string {
	verb := "started"
	if s.Resumed {
		verb = "goes on"
	}
	line := s.Name + " " + verb
	if s.Added.Added > 0 || s.Seen > 0 {
		line += ": " + addedLine(s.Added)
	}
	return line
}

func (a *App) printStarted(s Started) error {
	if a.json() {
		return a.printJSON(s)
	}
	a.printf("%s\n", a.startedLine(s))
	a.note("watch it: %s", a.command("campaign watch "+s.Name))
	return nil
}
