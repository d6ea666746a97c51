package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"holdfast/proxypool"
)

// proxiesImportCommand imports a list: all of it or, with one bad line, nothing.
func (a *App) proxiesImportCommand() *cobra.Command {
	var o proxypool.ImportOptions
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Import a list of proxies; with one bad line nothing is imported",
		Long: "Import a list of proxies, one a line: host:port, user:pass@host:port, scheme://user:pass@host:port or\n" +
			"host:port:user:pass, with http, https, socks5 or socks5h as scheme. Known ones are brought up to date.\n" +
			"The whole list is checked first. Credentials come in the file or on standard input, never by a flag.",
		Example: a.examples(
			"proxies import proxies.txt --source vendor-a --tag residential --region de",
			"proxies import - < proxies.txt",
			"proxies import proxies.txt --dry-run"),
		Args: args("a file, or - for standard input"),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, given []string) error {
			if o.MaxConcurrency < 1 || o.MinReuse < 0 {
				return usage("leave the flag out for the default", "--max-concurrency must be at least 1, --min-reuse not negative")
			}
			if o.Tier < 0 || o.Tier > proxypool.MaxTier {
				return usage(helpHint(cmd), "--tier is %d; it can be 0 to %d", o.Tier, proxypool.MaxTier)
			}
			entries, err := a.readProxies(given[0], o)
			if err != nil {
				return err
			}
			return a.withPool(ctx, func(s *session) error {
				report, err := s.importProxies(ctx, entries, o)
				if err != nil {
					return err
				}
				return a.printImport(report, o.DryRun)
			})
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Source, "source", "", "name of the list, to tell proxies apart by where they come from")
	fs.StringArrayVar(&o.Tags, "tag", nil, "tag of all of them (repeatable)")
	fs.StringVar(&o.Region, "region", "", "region of all of them: de")
	fs.StringVar(&o.Scheme, "scheme", "http", "scheme of lines that name none")
	fs.IntVar(&o.Tier, "tier", 0, "cost tier of all of them, 0 (cheapest) to 9")
	fs.IntVar(&o.MaxConcurrency, "max-concurrency", 1, "leases of a proxy at once")
	fs.DurationVar(&o.MinReuse, "min-reuse", 0*time.Second, "time between two uses of a proxy")
	fs.BoolVar(&o.DryRun, "dry-run", false, "say what would be done and change nothing")
	return cmd
}

// readProxies reads and checks a whole list. Its errors name lines, never what
// stands in them.
func (a *App) readProxies(path string, o proxypool.ImportOptions) ([]proxypool.Entry, error) {
	r, label := a.env.Stdin, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, noFile(filepath.Base(path), err)
		}
		defer f.Close() //nolint:errcheck // only read
		r, label = f, filepath.Base(path)
	}
	entries, err := proxypool.ParseList(r, label, o)
	var bad *proxypool.ListError
	switch {
	case errors.As(err, &bad):
		return nil, badInput("nothing was imported; mend the lines and run the same command again", "%s", bad.Error())
	case err != nil:
		return nil, badInput("check the file", "%s", err.Error())
	case len(entries) == 0:
		return nil, badInput("write one proxy a line: host:port", "%s holds no proxy", label)
	}
	return entries, nil
}

func (s *session) importProxies(ctx context.Context, entries []proxypool.Entry, o proxypool.ImportOptions) (proxypool.ImportReport, error) {
	report, err := s.pool.Import(ctx, entries, o)
	if errors.Is(err, proxypool.ErrRequest) {
		return report, badInput("nothing was imported", "%s", firstLine(err.Error()))
	}
	if err != nil {
		return report, s.redisFailure(err)
	}
	return report, nil
}

func (a *App) printImport(r proxypool.ImportReport, dry bool) error {
	if a.json() {
		return a.printJSON(struct {
			proxypool.ImportReport
			DryRun bool `json:"dry_run"`
		}{r, dry})
	}
	verb := "imported"
	if dry {
		verb = "would be imported"
	}
	a.printf("%s: %d added, %d updated, %d unchanged", verb, r.Added, r.Updated, r.Unchanged)
	if r.Repeated > 0 {
		a.printf(", %d repeated in the list", r.Repeated)
	}
	a.printf("\n")
	return nil
}
