// Command standalone is Holdfast in one process: a Temporal server on a SQLite
// file with its Web UI, a Redis with a journal, a worker, and the starter's
// commands. Nothing else needs to be installed.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/redis/go-redis/v9"
	"golang.org/x/term"

	"holdfast/internal/version"
	"holdfast/starter/cli"
)

func main() {
	redis.SetLogger(noLog{})
	collectLess()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first Ctrl-C drains, the second one ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], cli.Env{
		Name: filepath.Base(os.Args[0]), Version: version.Version,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ, IsTTY: isTTY, Width: width,
	})
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, env cli.Env) int {
	p := &program{env: env}
	p.env.Services = p.services
	p.app = cli.NewApp(p.env)
	root := p.app.Root()
	root.Short = "Scrape durably with everything in one process; start with: demo"
	root.Example = "  " + p.env.Name + " demo\n" +
		"  " + p.env.Name + " crawl --urls urls.txt --proxies proxies.txt --contact https://example.org/bot\n" +
		"  " + p.env.Name + " up\n\nand while it is up, from a second terminal:\n" + root.Example
	root.PersistentFlags().StringVar(&p.data, "data", p.lookup("HOLDFAST_DATA", "holdfast-data"), "data directory (HOLDFAST_DATA)")
	root.AddCommand(p.upCommand(), p.crawlCommand(), p.demoCommand(), p.benchCommand(), benchServeCommand(p))
	p.root = root
	return cli.Execute(ctx, root, args, p.env)
}

// collectLess halves what the collector costs, for some memory: the embedded Redis
// makes a Lua machine for each script, the server's caches are what is marked each
// time. GOGC, where it is set, holds. docs/performance.md has the numbers.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}

// noLog keeps go-redis from writing to standard error: what it has to say comes
// back as errors.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func isTTY(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func width() int {
	w, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil {
		return 0
	}
	return w
}
