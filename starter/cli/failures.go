package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// failurePage is the number of dead letters read at once.
const failurePage = 1000

// failuresCommand holds the commands on dead letters.
func (a *App) failuresCommand() *cobra.Command {
	return a.group("failures", "Show the URLs that failed (dead letters)",
		"The URLs of a campaign that failed are its dead letters: kept with the reason, the last proxy and the\n"+
			"file that holds the record.",
		[]string{"failures list docs"},
		a.failuresListCommand())
}

// failuresListCommand shows dead letters, grouped or one by one.
func (a *App) failuresListCommand() *cobra.Command {
	var reason, host string
	var urls bool
	cmd := &cobra.Command{
		Use:   "list NAME",
		Short: "List a campaign's failed URLs by reason and host",
		Long: "List the dead letters of a campaign's latest run (or of the run named): a table of reason and host with a\n" +
			"sample, or with --urls every URL on a line.",
		Example: a.examples("failures list docs", "failures list docs --reason http_404 --urls", "failures list docs-1 --output json"),
		Args:    args("a campaign's name"),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, given []string) error {
			s, err := a.open(ctx, needRedis)
			if err != nil {
				return err
			}
			defer s.close()
			run, err := s.resolve(ctx, given[0])
			if err != nil {
				return err
			}
			keep := func(u frontier.URLInfo) bool {
				return (reason == "" || string(u.Reason) == reason) && (host == "" || u.Host == host || before(u.Host, ":") == host)
			}
			if urls {
				return s.listFailures(ctx, run, keep)
			}
			return s.groupFailures(ctx, run, keep)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "only this reason")
	cmd.Flags().StringVar(&host, "host", "", "only this host")
	cmd.Flags().BoolVar(&urls, "urls", false, "print the URLs, one a line")
	return cmd
}

// eachFailure gives the run's dead letters page by page.
func (s *session) eachFailure(ctx context.Context, run frontier.RunInfo, yield func(frontier.URLInfo) error) error {
	// A page may come back short: dead letters that were run again are left out.
	// The list holds at most one entry a failure that ever was, so it ends.
	empty := 0
	for offset := 0; empty < 2; offset += failurePage {
		page, err := s.frontier.Failures(ctx, run.Name(), offset, failurePage)
		if err != nil {
			return s.redisFailure(err)
		}
		if len(page) == 0 {
			empty++
		}
		for _, u := range page {
			if err := yield(u); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) listFailures(ctx context.Context, run frontier.RunInfo, keep func(frontier.URLInfo) bool) error {
	return s.eachFailure(ctx, run, func(u frontier.URLInfo) error {
		switch {
		case !keep(u):
		case s.app.json():
			return s.app.printJSON(u)
		default:
			s.app.printf("%s\n", oneLine(u.URL))
		}
		return nil
	})
}

// FailureGroup is the dead letters of one reason at one host.
type FailureGroup struct {
	Reason crawl.Reason `json:"reason"`
	Host   string       `json:"host"`
	URLs   int          `json:"urls"`
	Sample string       `json:"sample"`
	Proxy  string       `json:"last_proxy,omitempty"`
	Advice string       `json:"what_to_do"`
}

func (s *session) groupFailures(ctx context.Context, run frontier.RunInfo, keep func(frontier.URLInfo) bool) error {
	groups := map[[2]string]*FailureGroup{}
	err := s.eachFailure(ctx, run, func(u frontier.URLInfo) error {
		if !keep(u) {
			return nil
		}
		key := [2]string{string(u.Reason), u.Host}
		g := groups[key]
		if g == nil {
			g = &FailureGroup{Reason: u.Reason, Host: u.Host, Sample: u.URL, Advice: advice(u.Reason)}
			groups[key] = g
		}
		g.URLs++
		g.Proxy = or(u.Proxy, g.Proxy)
		return nil
	})
	if err != nil {
		return err
	}
	sorted := make([]*FailureGroup, 0, len(groups))
	for _, g := range groups {
		sorted = append(sorted, g)
	}
	slices.SortFunc(sorted, func(a, b *FailureGroup) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Host, b.Host))
	})
	if s.app.json() {
		return s.app.printJSON(sorted)
	}
	if len(sorted) == 0 {
		s.app.note("%s has no such failure", run.Name())
		return nil
	}
	g := s.app.newGrid("reason", "host", "urls", "last proxy", "what to do", "sample")
	g.right(3)
	for _, f := range sorted {
		g.row(f.Reason, oneLine(f.Host), f.URLs, dash(f.Proxy), f.Advice, oneLine(f.Sample))
	}
	g.print()
	return nil
}

// advice is what a reason asks of whoever runs the campaign.
func advice(r crawl.Reason) string {
	switch r {
	case crawl.ReasonBlocked:
		return "other proxies, or slower: --delay"
	case crawl.ReasonThrottled, crawl.ReasonRetryAfterTooLong:
		return "slower: --delay, --per-host"
	case crawl.ReasonProxyFaults, crawl.ReasonProxyAuth, crawl.ReasonNoProxy:
		return "look at the proxies"
	case crawl.ReasonTooLarge:
		return "a larger body cap"
	case crawl.ReasonNoSuchHost, crawl.ReasonInvalidURL, crawl.ReasonSchemeNotAllowed:
		return "mend the list"
	case crawl.ReasonAddressNotAllowed:
		return "--allow-private, if it is meant"
	case crawl.ReasonRetriesExhausted, crawl.ReasonMaxWait, crawl.ReasonLost, crawl.ReasonTerminated, crawl.ReasonTimedOut:
		return "crawl again later"
	}
	if strings.HasPrefix(string(r), "http_4") {
		return "the site says no"
	}
	return "see explain"
}

// printFailureCounts shows a run's failures by reason, most first.
func (s *session) printFailureCounts(ctx context.Context, v RunView) error {
	counts, err := s.frontier.FailureCounts(ctx, v.Name)
	if err != nil {
		return s.redisFailure(err)
	}
	reasons := make([]crawl.Reason, 0, len(counts))
	for r, n := range counts {
		if n > 0 {
			reasons = append(reasons, r)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	slices.SortFunc(reasons, func(a, b crawl.Reason) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	parts := make([]string, len(reasons))
	for i, r := range reasons {
		parts[i] = fmt.Sprintf("%s %d", r, counts[r])
	}
	s.app.printf("failed: %s\n", strings.Join(parts, ", "))
	return nil
}
