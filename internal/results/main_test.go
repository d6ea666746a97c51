package results_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"holdfast/internal/crawl"
	"holdfast/internal/results"
)

// The test binary starts itself as a child that is killed or limited.
func TestMain(m *testing.M) {
	if mode := os.Getenv("RESULTS_TEST_CHILD"); mode != "" {
		os.Exit(child(mode, os.Getenv("RESULTS_TEST_DIR")))
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, dir string, o results.LocalOptions) *results.Local {
	t.Helper()
	if o.Worker == "" {
		o.Worker = "w1"
	}
	l, err := results.OpenLocal(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func record(n int, state crawl.State) crawl.Record {
	r := crawl.Record{
		Campaign: "docs", Run: 1, ID: fmt.Sprintf("%032x", n), State: state,
		URL: fmt.Sprintf("http://site.test/%d?a=1&b=<2>", n), Method: "GET", WorkflowID: "docs-1/x",
	}
	if state != crawl.Completed {
		reason := crawl.HTTPReason(404)
		r.Reason = &reason
	}
	return r
}

func mustAppend(t testing.TB, l *results.Local, r crawl.Record) string {
	t.Helper()
	file, err := l.Append(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func runDir(dir string) string { return results.RunDir(dir, "docs", 1) }

func content(t testing.TB, dir, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(runDir(dir), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ids reads the ids of all lines of the run's files, doubles included.
func ids(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(runDir(dir), "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		text := content(t, dir, filepath.Base(f))
		if text != "" && !strings.HasSuffix(text, "\n") {
			t.Errorf("%s ends in a torn line", f)
		}
		for line := range strings.Lines(text) {
			_, rest, ok := strings.Cut(line, `"id":"`)
			if !ok || len(rest) < 32 {
				t.Fatalf("%s: line without id: %q", f, line)
			}
			out = append(out, rest[:32])
		}
	}
	slices.Sort(out)
	return out
}

func id(n int) string { return fmt.Sprintf("%032x", n) }

// confirmedIn answers as the frontier would.
func confirmedIn(where map[crawl.RecordKey]string) results.Confirmed {
	return func(keys []crawl.RecordKey) ([]string, error) {
		out := make([]string, len(keys))
		for i, k := range keys {
			out[i] = where[k]
		}
		return out, nil
	}
}

func nothing(keys []crawl.RecordKey) ([]string, error) { return make([]string, len(keys)), nil }
