// The starter is Holdfast's command line against a cluster: it starts campaigns,
// watches them and tells what became of each URL.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/redis/go-redis/v9"
	"golang.org/x/term"

	"holdfast/internal/version"
	"holdfast/starter/cli"
)

func main() {
	redis.SetLogger(noLog{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first Ctrl-C stops in order, the second one at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, os.Args[1:], cli.Env{
		Name:    filepath.Base(os.Args[0]),
		Version: version.Version,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Environ: os.Environ,
		IsTTY:   isTTY,
		Width:   width,
	}))
}

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
