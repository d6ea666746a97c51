package cli

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"holdfast/internal/frontier"
	"holdfast/internal/results"
	"holdfast/proxypool"
)

// doctorCommand looks at everything a campaign needs and changes nothing.
func (a *App) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "Check what a campaign needs: Temporal, workers, Redis, proxies, results",
		Long:    "Check what a campaign needs and say what to do about what is missing. It changes nothing.",
		Example: a.examples("doctor", "doctor --output json"),
		Args:    args(),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			r := &report{}
			if err := a.checkServices(ctx, r, false); err != nil {
				return err
			}
			return a.printReport(r, "doctor")
		}),
	}
}

// checkState reports the pool and the sink.
func (a *App) checkState(ctx context.Context, r *report, rdb *redis.Client) {
	stats, err := proxypool.New(rdb, proxypool.Options{}).Stats(ctx)
	switch good := stats.Proxies[proxypool.StateActive] + stats.Proxies[proxypool.StateCooling]; {
	case err != nil:
		r.err("proxies", err)
	case good == 0:
		r.warn("proxies", "none can be used", "import some: "+a.command("proxies import FILE")+", or start campaigns with --direct")
	default:
		r.ok("proxies", fmt.Sprintf("%d usable, %d quarantined, %d of %d in use, %d leases open",
			good, stats.Proxies[proxypool.StateQuarantined], stats.InUse, stats.Capacity, stats.Leases))
	}
	sink, err := frontier.New(rdb, frontier.Options{}).Sink(ctx)
	if err != nil {
		r.err("results", err)
		return
	}
	if sink == "" {
		r.warn("results", "no worker has registered where results go", "start a worker with --results file:///abs/dir")
		return
	}
	if _, err := results.ParseURL(sink); err != nil {
		r.ok("results", oneLine(sink))
		return
	}
	r.ok("results", oneLine(sink)+" (a folder: workers on several machines would each fill their own)")
}
