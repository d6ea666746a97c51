package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"holdfast/proxypool"
)

// proxiesCommand holds the commands on the pool.
func (a *App) proxiesCommand() *cobra.Command {
	return a.group("proxies", "Import proxies, see how they do, take them out and back",
		"The pool's proxies live in Redis, credentials included; no command shows a credential.",
		[]string{"proxies import proxies.txt --source vendor-a", "proxies list", "proxies restore p17"},
		a.proxiesImportCommand(),
		a.proxiesListCommand(),
		a.proxiesShowCommand(),
		a.proxiesLeasesCommand(),
		a.proxiesQuarantineCommand(),
		a.proxiesRestoreCommand(),
	)
}

// usable reports whether a proxy matches a selection and may be leased, now or
// after a rest.
func usable(p proxypool.Info, sel proxypool.Selector, now time.Time) bool {
	switch {
	case p.State != proxypool.StateActive && p.State != proxypool.StateCooling:
		return false
	case !p.Expires.IsZero() && !p.Expires.After(now):
		return false
	case sel.Region != "" && p.Region != sel.Region, p.Tier > sel.MaxTier:
		return false
	}
	for _, t := range sel.Tags {
		if !slices.Contains(p.Tags, t) {
			return false
		}
	}
	return true
}

// ProxyView is a proxy as JSON shows it: no credential, durations in milliseconds.
type ProxyView struct {
	proxypool.Info
	MinReuse   *int  `json:"min_reuse,omitempty"` // hides Info's, which counts nanoseconds
	MinReuseMS int64 `json:"min_reuse_ms"`
}

func proxyView(p proxypool.Info) ProxyView {
	return ProxyView{Info: p, MinReuseMS: p.MinReuse.Milliseconds()}
}

// withPool runs fn with the pool open.
func (a *App) withPool(ctx context.Context, fn func(s *session) error) error {
	s, err := a.open(ctx, needRedis)
	if err != nil {
		return err
	}
	defer s.close()
	return fn(s)
}
