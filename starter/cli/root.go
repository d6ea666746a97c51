package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// App is one command line: its world and its global flags. A program with
// commands of its own shares them.
type App struct {
	env  Env
	opts options
}

// options are the global flags as they were given.
type options struct {
	address   string
	namespace string
	profile   string
	redis     string
	contact   string
	output    string
	yes       bool
	quiet     bool
}

// NewApp returns a command line for env.
func NewApp(env Env) *App { return &App{env: env.withDefaults()} }

// New returns the whole command tree, named by env.Name.
func New(env Env) *cobra.Command { return NewApp(env).Root() }

// Root builds the command tree. A program that adds commands of its own adds
// them to it and runs it with Execute.
func (a *App) Root() *cobra.Command {
	root := &cobra.Command{
		Use:   a.env.Name,
		Short: "Scrape through proxies, durably: every URL is one workflow",
		Long: "Scrape through proxies, durably: every URL is one workflow, so that a crash, a deploy or a\n" +
			"site that says \"come back in six hours\" costs nothing that was already done.",
		Example: a.examples(
			"proxies import proxies.txt",
			"scrape https://example.org/ --contact you@example.org",
			"campaign start --name docs --urls urls.txt --contact https://example.org/bot",
			"campaign watch docs"),
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       a.env.Version,
	}
	root.SetIn(a.env.Stdin)
	root.SetOut(a.env.Stdout)
	root.SetErr(a.env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(helpHint(cmd), "%s", err.Error())
	})
	a.globalFlags(root.PersistentFlags())
	root.AddCommand(a.commands()...)
	return root
}

// Commands returns the top-level commands alone, each with the global flags of
// its own, for a program with a root that is not New's.
func Commands(env Env) []*cobra.Command {
	a := NewApp(env)
	cmds := a.commands()
	for _, c := range cmds {
		a.globalFlags(c.PersistentFlags())
	}
	return cmds
}

func (a *App) commands() []*cobra.Command {
	return []*cobra.Command{
		a.scrapeCommand(),
		a.explainCommand(),
		a.campaignCommand(),
		a.failuresCommand(),
		a.resultsCommand(),
		a.proxiesCommand(),
		a.setupCommand(),
		a.doctorCommand(),
		a.versionCommand(),
	}
}

func (a *App) globalFlags(fs *pflag.FlagSet) {
	o := &a.opts
	fs.StringVar(&o.address, "address", "", "Temporal's host:port (TEMPORAL_ADDRESS; default 127.0.0.1:7233)")
	fs.StringVar(&o.namespace, "namespace", "", "Temporal's namespace (TEMPORAL_NAMESPACE; default \"default\")")
	fs.StringVar(&o.profile, "profile", "", "profile of the Temporal configuration file (TEMPORAL_PROFILE)")
	fs.StringVar(&o.redis, "redis", "", "Redis as redis://host:port/db (HOLDFAST_REDIS; default redis://127.0.0.1:6379)")
	fs.StringVar(&o.contact, "contact", "", "URL or mail address that sites can reach you by (HOLDFAST_CONTACT)")
	fs.StringVar(&o.output, "output", "table", "table or json")
	fs.BoolVar(&o.yes, "yes", false, "do not ask before something that cannot be undone")
	fs.BoolVar(&o.quiet, "quiet", false, "no progress and no remarks on standard error")
}

// Run runs the command line args (without the program's name) and returns the exit code.
func Run(ctx context.Context, args []string, env Env) int {
	return Execute(ctx, New(env), args, env)
}

// Execute runs root, which New built for the same env, and returns the exit
// code. What went wrong is written to env.Stderr.
func Execute(ctx context.Context, root *cobra.Command, args []string, env Env) int {
	env = env.withDefaults()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitDone
	}
	var f *Failure
	if !errors.As(err, &f) && !ranCommand(err) {
		// What cobra itself refuses (unknown command or flag) is wrong use.
		f = usage(helpHint(cmd), "%s", firstLine(err.Error()))
	} else {
		f = asFailure(ctx, err)
	}
	f.print(env.Stderr, wantsJSON(root, args))
	return f.Exit
}

// ranError marks an error that a command's own code returned.
type ranError struct{ err error }

func (r *ranError) Error() string { return r.err.Error() }
func (r *ranError) Unwrap() error { return r.err }

func ranCommand(err error) bool {
	var r *ranError
	return errors.As(err, &r)
}

// run adapts a command's function: it checks the global flags first, and marks
// the function's errors as the command's own, so that Execute tells them from
// wrong use.
func (a *App) run(fn func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if a.opts.output != "table" && a.opts.output != "json" {
			return usage(helpHint(cmd), "--output is %q; it can be table or json", a.opts.output)
		}
		if err := fn(cmd.Context(), cmd, args); err != nil {
			return &ranError{err: err}
		}
		return nil
	}
}

// group is a command that only holds others.
func (a *App) group(use, short, long string, examples []string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		Example: a.examples(examples...),
		Args:    cobra.ArbitraryArgs,
		RunE: a.run(func(_ context.Context, cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usage(helpHint(cmd), "%q is not a command of %s", args[0], cmd.CommandPath())
		}),
	}
	cmd.AddCommand(subs...)
	return cmd
}

// examples indents example command lines and puts the program's name before them.
func (a *App) examples(lines ...string) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + a.command(l)
	}
	return strings.Join(out, "\n")
}

// command returns a command line of this program, for hints: `starter setup`.
// A line with a pipe has the program's name after it.
func (a *App) command(line string) string {
	if before, after, ok := strings.Cut(line, "| "); ok {
		return before + "| " + a.env.Name + " " + after
	}
	return a.env.Name + " " + line
}

// args takes exactly the named arguments.
func args(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) < len(names) {
			return usage(helpHint(cmd), "%s needs %s", cmd.CommandPath(), strings.Join(names[len(given):], " and "))
		}
		if len(given) > len(names) {
			return usage(helpHint(cmd), "%s takes %s; %q is one too many", cmd.CommandPath(), countArgs(len(names)), given[len(names)])
		}
		return nil
	}
}

// someArgs takes one or more arguments of a kind.
func someArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 {
			return usage(helpHint(cmd), "%s needs at least one %s", cmd.CommandPath(), name)
		}
		return nil
	}
}

func countArgs(n int) string {
	switch n {
	case 0:
		return "no argument"
	case 1:
		return "one argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// wantsJSON reports whether errors are to be JSON, also where the command line
// could not be parsed to its end.
func wantsJSON(root *cobra.Command, args []string) bool {
	if f := root.PersistentFlags().Lookup("output"); f != nil && f.Changed {
		return f.Value.String() == "json"
	}
	for i, arg := range args {
		if arg == "--output=json" || (arg == "--output" && i+1 < len(args) && args[i+1] == "json") {
			return true
		}
	}
	return false
}
