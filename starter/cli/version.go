package cli

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"
)

// versionCommand prints what runs here.
func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of this program and of the Go that built it.",
		Example: a.examples("version", "version --output json"),
		Args:    args(),
		RunE: a.run(func(context.Context, *cobra.Command, []string) error {
			if a.json() {
				return a.printJSON(map[string]string{"name": a.env.Name, "version": a.env.Version, "go": runtime.Version()})
			}
			a.printf("%s %s (%s)\n", a.env.Name, a.env.Version, runtime.Version())
			return nil
		}),
	}
}
