package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The built programs.
var bin struct{ standalone, worker, starter string }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	for _, b := range []struct {
		path *string
		name string
	}{{&bin.standalone, "standalone"}, {&bin.worker, "worker"}, {&bin.starter, "starter"}} {
		*b.path = filepath.Join(dir, "holdfast-"+b.name)
		build := exec.Command("go", "build", "-o", *b.path, "holdfast/"+b.name)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build", b.name+":", err)
			return 1
		}
	}
	return m.Run()
}

// inFull skips a test that takes long by its nature unless HOLDFAST_TEST_FULL=1,
// as .ci/run sets it: `go test ./...` has the others.
func inFull(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_TEST_FULL") != "1" {
		t.Skip("runs with HOLDFAST_TEST_FULL=1")
	}
}
