package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"holdfast/proxypool"
)

// proxiesLeasesCommand lists the open leases.
func (a *App) proxiesLeasesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "leases",
		Short:   "List the open leases: who uses which proxy at which host",
		Long:    "List the open leases: who uses which proxy at which host, and until when without renewal.",
		Example: a.examples("proxies leases", "proxies leases --output json"),
		Args:    args(),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return a.withPool(ctx, func(s *session) error {
				leases, err := s.pool.Leases(ctx)
				if err != nil {
					return s.redisFailure(err)
				}
				if a.json() {
					return a.printJSON(leases)
				}
				if len(leases) == 0 {
					a.note("no lease is open")
					return nil
				}
				a.printLeases(leases)
				return nil
			})
		}),
	}
}

func (a *App) printLeases(leases []proxypool.LeaseInfo) {
	g := a.newGrid("lease", "proxy", "host", "granted", "expires", "fence")
	g.right(6)
	for _, l := range leases {
		proxy := l.Proxy
		if proxy == "" {
			proxy = "direct"
		}
		g.row(oneLine(l.ID), proxy, dash(oneLine(l.Host)), moment(l.Granted), l.Deadline.Local().Format(time.TimeOnly), l.Fence)
	}
	g.print()
}
