package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/proxypool"
)

// proxiesListCommand lists the pool.
func (a *App) proxiesListCommand() *cobra.Command {
	var state, region string
	var tags []string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the pool's proxies: state, use, health",
		Long:    "List the pool's proxies with their state, use and health. No credential is shown.",
		Example: a.examples("proxies list", "proxies list --state quarantined", "proxies list --tag residential --output json"),
		Args:    args(),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if state != "" && !knownState(proxypool.ProxyState(state)) {
				return usage(helpHint(cmd), "--state is %q; it can be %s", state, states())
			}
			return a.withPool(ctx, func(s *session) error {
				all, err := s.pool.Proxies(ctx)
				if err != nil {
					return s.redisFailure(err)
				}
				views := []ProxyView{}
				for _, p := range all {
					if (state == "" || string(p.State) == state) && (region == "" || p.Region == region) && hasTags(p, tags) {
						views = append(views, proxyView(p))
					}
				}
				if a.json() {
					return a.printJSON(views)
				}
				if len(all) == 0 {
					a.note("the pool is empty; import proxies: %s", a.command("proxies import FILE"))
					return nil
				}
				a.printProxies(views)
				return nil
			})
		}),
	}
	cmd.Flags().StringVar(&state, "state", "", "only this state: "+states())
	cmd.Flags().StringVar(&region, "region", "", "only this region")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "only with this tag (repeatable)")
	return cmd
}

func hasTags(p proxypool.Info, tags []string) bool {
	return usable(proxypool.Info{State: proxypool.StateActive, Tags: p.Tags}, proxypool.Selector{Tags: tags}, p.Since)
}

func allStates() []proxypool.ProxyState {
	return []proxypool.ProxyState{
		proxypool.StateActive, proxypool.StateCooling, proxypool.StateDraining,
		proxypool.StateQuarantined, proxypool.StateExpired, proxypool.StateRemoving,
	}
}

func knownState(s proxypool.ProxyState) bool {
	for _, k := range allStates() {
		if k == s {
			return true
		}
	}
	return false
}

func states() string {
	var words []string
	for _, s := range allStates() {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

func (a *App) printProxies(views []ProxyView) {
	g := a.newGrid("id", "state", "address", "auth", "region", "tags", "source", "in use", "good", "bad", "in a row", "latency", "reason")
	g.right(8, 9, 10, 11, 12)
	for _, p := range views {
		auth := "-"
		if p.Auth {
			auth = "yes"
		}
		latency := "-"
		if p.LatencyMS > 0 {
			latency = span(ms(p.LatencyMS))
		}
		g.row(p.ID, a.paint(string(p.State)), p.Scheme+"://"+oneLine(p.Address), auth, dash(p.Region), dash(strings.Join(p.Tags, ",")),
			dash(oneLine(p.Source)), fmt.Sprintf("%d/%d", p.InUse, p.MaxConcurrency), p.Successes, p.Failures, p.Consecutive, latency, dash(p.Reason))
	}
	g.print()
}
