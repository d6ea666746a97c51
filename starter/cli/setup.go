package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// setupCommand makes a cluster ready: search attributes, and checks of what the
// programs need. Running it again changes nothing.
func (a *App) setupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Make a cluster ready: register search attributes, check Temporal and Redis",
		Long: "Register the search attributes that the workflows are started with and check the namespace and Redis\n" +
			"(version, noeviction, persistence). Needed once before the first campaign on a cluster; running it\n" +
			"again changes nothing.",
		Example: a.examples("setup",
			"setup --address temporal.example.org:7233 --namespace crawl --redis redis://redis.example.org:6379",
			"setup --output json"),
		Args: args(),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			r := &report{}
			if err := a.checkServices(ctx, r, true); err != nil {
				return err
			}
			return a.printReport(r, "setup")
		}),
	}
}

// checkServices runs the checks that setup and doctor share. Its error is wrong
// use or an interruption; what it found is in the report.
func (a *App) checkServices(ctx context.Context, r *report, add bool) error {
	t, err := a.target(ctx)
	if err != nil {
		return err
	}
	if c, err := a.dialTemporal(ctx, t); err != nil {
		r.err("temporal", err)
		r.skipped("search attributes", "no Temporal")
	} else {
		defer c.Close()
		if a.checkNamespace(ctx, r, t, c) {
			a.checkAttributes(ctx, r, t, c, add)
			if !add {
				a.checkPollers(ctx, r, t, c)
			}
		}
	}
	if rdb, err := a.dialRedis(ctx, t); err != nil {
		r.err("redis", err)
	} else {
		defer rdb.Close() //nolint:errcheck // nothing is buffered
		a.checkRedis(ctx, r, t, rdb)
		if !add {
			a.checkState(ctx, r, rdb)
		}
	}
	return ctx.Err()
}
