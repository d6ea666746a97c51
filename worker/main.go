// Command worker runs Holdfast's workflows and fetches against a Temporal
// cluster and a Redis. Start any number of them; they share the work.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// noLog keeps go-redis from writing beside the log: what it has to say comes back
// as errors.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(noLog{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains, the second one ends the process.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args, os.Environ(), os.Stderr)
	stop()
	os.Exit(code)
}

// run executes the program and returns its exit code: 0 stopped as asked, 1
// failed, 2 wrong use, 3 a service cannot be reached.
func run(ctx context.Context, args, environ []string, stderr io.Writer) int {
	env := map[string]string{}
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	cmd := newCommand(filepath.Base(args[0]), env, stderr)
	cmd.SetArgs(args[1:])
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	failure := asFailure(err)
	fmt.Fprintf(stderr, "%s: %v\n", cmd.Name(), failure.err)
	if failure.hint != "" {
		fmt.Fprintf(stderr, "  %s\n", failure.hint)
	}
	return failure.code
}
