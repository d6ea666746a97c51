package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// proxiesQuarantineCommand takes proxies out of use.
func (a *App) proxiesQuarantineCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "quarantine ID...",
		Short:   "Lease proxies no more until they are restored",
		Long:    "Lease the proxies no more until they are restored; what they carry now goes on. With one unknown id\nnothing is changed.",
		Example: a.examples("proxies quarantine p17", "proxies quarantine p17 p18"),
		Args:    someArgs("proxy id"),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, given []string) error {
			return a.withPool(ctx, func(s *session) error {
				return s.changed("quarantined", given, s.pool.Quarantine(ctx, given...))
			})
		}),
	}
}

// proxiesRestoreCommand takes proxies back into use.
func (a *App) proxiesRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "restore ID...",
		Short:   "Take proxies back into use and forget their failures in a row",
		Long:    "Make the proxies active, whatever they were, and forget their failures in a row. With one unknown id\nnothing is changed.",
		Example: a.examples("proxies restore p17", "proxies restore p17 p18"),
		Args:    someArgs("proxy id"),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, given []string) error {
			return a.withPool(ctx, func(s *session) error {
				return s.changed("restored", given, s.pool.Restore(ctx, given...))
			})
		}),
	}
}

// changed reports a change of proxies, or why there was none.
func (s *session) changed(verb string, ids []string, err error) error {
	if err != nil {
		return s.poolFailure(err)
	}
	if s.app.json() {
		return s.app.printJSON(map[string]any{verb: ids})
	}
	s.app.printf("%s %s\n", verb, strings.Join(ids, ", "))
	return nil
}
