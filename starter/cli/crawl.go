package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"holdfast/internal/frontier"
	"holdfast/proxypool"
)

// Crawl is `standalone crawl`: import proxies, start a campaign or go on with
// it, watch it to its end, print the summary. Its flags are those of `campaign
// start` and --proxies.
//
// Run again with the same input it goes on where it was; once finished it prints
// the summary again; other input is refused, naming what differs.
type Crawl struct {
	app     *App
	flags   specFlags
	urls    string
	name    string
	proxies string
	newRun  bool

	start   *start
	entries []proxypool.Entry
	options proxypool.ImportOptions
}

// Crawl adds the flags of a crawl to cmd.
func (a *App) Crawl(cmd *cobra.Command) *Crawl {
	c := &Crawl{app: a}
	cmd.Flags().StringVar(&c.urls, "urls", "", "list of URLs; - for standard input")
	cmd.Flags().StringVar(&c.name, "name", "crawl", "the campaign's name")
	cmd.Flags().StringVar(&c.proxies, "proxies", "", "list of proxies, imported before the start")
	cmd.Flags().BoolVar(&c.newRun, "new-run", false, "crawl again though the latest run has ended")
	c.flags.register(cmd)
	return c
}

// Prepare checks flags and files to the end. It contacts nothing and writes
// nothing; call Close when done. Errors are *Failure.
func (c *Crawl) Prepare(ctx context.Context, cmd *cobra.Command) error {
	if c.proxies != "" {
		if c.flags.direct {
			return usage(helpHint(cmd), "--direct uses no proxy; leave out --proxies or --direct")
		}
		c.options = proxypool.ImportOptions{Source: c.name, MaxConcurrency: 1}
		var err error
		if c.entries, err = c.app.readProxies(c.proxies, c.options); err != nil {
			return err
		}
	}
	st, err := c.app.readStart(ctx, cmd, &c.flags, c.name, c.urls)
	if err != nil {
		return err
	}
	st.newRun, st.goOn = c.newRun, true
	c.start = st
	return nil
}

// Close removes what Prepare kept of standard input.
func (c *Crawl) Close() {
	if c.start != nil {
		c.start.seeds.close()
	}
}

// Run does the crawl against the services that Env.Services or the flags name.
// After an interruption goesOn is the command that the hint gives. Errors are
// *Failure for what a user can do something about.
func (c *Crawl) Run(ctx context.Context, goesOn string) error {
	err := c.run(ctx)
	var f *Failure
	if goesOn != "" && errors.As(err, &f) && f.Exit == ExitInterrupted {
		return interrupted(goesOn, "%s", c.name)
	}
	return err
}

func (c *Crawl) run(ctx context.Context) error {
	a := c.app
	s, err := a.open(ctx, needAll)
	if err != nil {
		return err
	}
	defer s.close()
	if len(c.entries) > 0 {
		report, err := s.importProxies(ctx, c.entries, c.options)
		if err != nil {
			return err
		}
		a.note("proxies: %d added, %d updated, %d unchanged", report.Added, report.Updated, report.Unchanged)
	}
	started, err := s.start(ctx, c.start)
	if err != nil {
		return err
	}
	if started.over {
		return s.summaryAgain(ctx, started.Name)
	}
	a.note("%s", a.startedLine(started))
	return s.watchToEnd(ctx, started.Name)
}

// summaryAgain prints the summary of a run that ended before: exit 0.
func (s *session) summaryAgain(ctx context.Context, run string) error {
	if err := s.awaitClose(ctx, run); err != nil {
		return err
	}
	view, err := s.look(ctx, run)
	if err != nil {
		return err
	}
	if view.State == frontier.RunFinished {
		s.app.note("%s has finished before; --new-run crawls again", run)
	}
	err = s.summary(ctx, view)
	var f *Failure
	if errors.As(err, &f) && f.Code == "nothing_succeeded" {
		return nil
	}
	return err
}

// RunE adapts fn as a command of this command line: it checks the global flags
// and marks fn's errors as the command's own.
func (a *App) RunE(fn func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return a.run(fn)
}

// JSON reports whether --output json was given.
func (a *App) JSON() bool { return a.json() }
