package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/internal/frontier"
)

// campaignAddCommand adds requests to an open run.
func (a *App) campaignAddCommand() *cobra.Command {
	var urls string
	cmd := &cobra.Command{
		Use:   "add NAME --urls FILE|-",
		Short: "Add URLs to a running campaign",
		Long: "Add URLs to a campaign's open run. The whole list is checked first. URLs that the run has seen already\n" +
			"are counted and not crawled again, so that the same command can be repeated.",
		Example: a.examples("campaign add docs --urls more.txt", "campaign add docs --urls - < more.jsonl"),
		Args:    args("a campaign's name"),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, given []string) error {
			if urls == "" {
				return usage("give a file with one URL a line, or - for standard input", "%s needs --urls", cmd.CommandPath())
			}
			in, err := a.readSeeds(ctx, urls)
			if err != nil {
				return err
			}
			defer in.close()
			s, err := a.open(ctx, needRedis)
			if err != nil {
				return err
			}
			defer s.close()
			return s.add(ctx, given[0], in)
		}),
	}
	cmd.Flags().StringVar(&urls, "urls", "", "list of URLs; - for standard input")
	return cmd
}

func (s *session) add(ctx context.Context, name string, in *seeds) error {
	run, err := s.resolve(ctx, name)
	if err != nil {
		return err
	}
	over := refused("run_ended", "start another run: "+s.app.command("campaign start --name "+run.Campaign+" --new-run --urls FILE"),
		"%s takes no more URLs: it is %s", run.Name(), run.State)
	if !run.State.Open() {
		return over
	}
	if err := s.app.needContact(run.Spec, in.outside); err != nil {
		return err
	}
	if in.inside != "" && !run.Spec.AllowPrivate {
		return refused("not_allowed", "start a campaign of its own for it",
			"%s is on loopback, and %s was started for public targets", oneLine(in.inside), run.Name())
	}
	var sum frontier.Added
	batch := make([]frontier.Entry, 0, frontier.BatchSize)
	flush := func() error {
		added, err := s.frontier.Add(ctx, run.Name(), batch)
		sum.Added += added.Added
		sum.Seen += added.Seen
		batch = batch[:0]
		return err
	}
	_, err = in.each(func(e frontier.Entry) error {
		if batch = append(batch, e); len(batch) < frontier.BatchSize {
			return nil
		}
		return flush()
	})
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	switch {
	case errors.Is(err, frontier.ErrRunEnded):
		over.Message = fmt.Sprintf("%s ended while URLs were added: %s", run.Name(), addedLine(sum))
		return over
	case err != nil && ctx.Err() != nil:
		return interrupted("the same command", "%s", addedLine(sum))
	case err != nil:
		return s.redisFailure(err)
	}
	if s.app.json() {
		return s.app.printJSON(struct {
			Name string `json:"name"`
			frontier.Added
		}{run.Name(), sum})
	}
	s.app.printf("%s: %s\n", run.Name(), addedLine(sum))
	return nil
}

func addedLine(a frontier.Added) string {
	return fmt.Sprintf("%d URLs added, %d already seen", a.Added, a.Seen)
}
