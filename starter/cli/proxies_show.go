package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/proxypool"
)

// proxiesShowCommand shows one proxy.
func (a *App) proxiesShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one proxy: state, health, last reason, open leases",
		Long:    "Show one proxy of the pool and the leases it carries now. No credential is shown.",
		Example: a.examples("proxies show p17", "proxies show p17 --output json"),
		Args:    args("a proxy's id"),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, given []string) error {
			return a.withPool(ctx, func(s *session) error {
				p, err := s.pool.Proxy(ctx, given[0])
				if err != nil {
					return s.poolFailure(err)
				}
				all, err := s.pool.Leases(ctx)
				if err != nil {
					return s.redisFailure(err)
				}
				leases := []proxypool.LeaseInfo{}
				for _, l := range all {
					if l.Proxy == p.ID {
						leases = append(leases, l)
					}
				}
				if a.json() {
					return a.printJSON(struct {
						ProxyView
						Leases []proxypool.LeaseInfo `json:"leases"`
					}{proxyView(p), leases})
				}
				a.printProxy(p)
				if len(leases) > 0 {
					a.printf("\n")
					a.printLeases(leases)
				}
				return nil
			})
		}),
	}
}

// poolFailure says what to do where an id is not known.
func (s *session) poolFailure(err error) error {
	if errors.Is(err, proxypool.ErrNoProxy) {
		return refused("no_such_proxy", "see "+s.app.command("proxies list"), "%s: nothing was changed", strings.TrimPrefix(err.Error(), "proxypool: "))
	}
	return s.redisFailure(err)
}

func (a *App) printProxy(p proxypool.Info) {
	state := a.paint(string(p.State))
	if !p.CoolingUntil.IsZero() {
		state += " until " + p.CoolingUntil.Local().Format(time.TimeOnly)
	}
	auth := "no credentials"
	if p.Auth {
		auth = "with credentials"
	}
	lines := [][2]string{
		{"id", p.ID},
		{"state", state + ", since " + moment(p.Since)},
		{"address", p.Scheme + "://" + oneLine(p.Address) + ", " + auth},
		{"region", dash(p.Region)},
		{"tags", dash(strings.Join(p.Tags, ", "))},
		{"source", dash(oneLine(p.Source))},
		{"in use", fmt.Sprintf("%d of %d", p.InUse, p.MaxConcurrency)},
		{"min reuse", span(p.MinReuse)},
		{"expires", moment(p.Expires)},
		{"samples", fmt.Sprintf("%d good, %d bad, %d unclear, %d bad in a row", p.Successes, p.Failures, p.Unclear, p.Consecutive)},
		{"last reason", dash(p.Reason)},
		{"latency", span(ms(p.LatencyMS))},
		{"last used", moment(p.LastUsed)},
	}
	for _, l := range lines {
		a.printf("%-12s %s\n", l[0], l[1])
	}
}
