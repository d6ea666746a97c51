package results_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/results"
)

// child is what the test binary does when it is started as a child.
func child(mode, dir string) int {
	var err error
	switch mode {
	case "write":
		err = childWrites(dir)
	case "limit":
		err = childHitsTheLimit(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// childWrites stores bodies and records until it is killed, and says of each
// record that it is durable.
func childWrites(dir string) error {
	l, err := results.OpenLocal(dir, results.LocalOptions{Worker: "victim", MaxFile: 64 << 10})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failed := make(chan error)
	for w := range 16 {
		go func() {
			for i := w; ; i += 16 {
				if err := childWritesOne(l, i); err != nil {
					failed <- err
					return
				}
				mu.Lock()
				fmt.Println(id(i))
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

func childWritesOne(l *results.Local, i int) error {
	b, err := l.NewBody(context.Background(), "docs", 1)
	if err != nil {
		return err
	}
	if _, err := b.Write(noise(1000+i%7*100_000, uint64(i))); err != nil {
		return err
	}
	ref, sum, err := b.Commit()
	if err != nil {
		return err
	}
	r := record(i, crawl.Completed)
	r.Body, r.SHA256 = &ref, sum
	_, err = l.Append(context.Background(), r)
	return err
}

func start(t *testing.T, mode, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "RESULTS_TEST_CHILD="+mode, "RESULTS_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestAKilledWriterLosesNothingThatItReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	durable := make(map[string]bool)
	for _, after := range []int{1, 40, 150} {
		cmd := start(t, "write", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if len(lines.Text()) == 32 {
				durable[lines.Text()] = true
			}
			if n+1 == after {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("the child was not killed: %v", err)
		}
	}

	l := open(t, dir, results.LocalOptions{Worker: "heir"})
	// Of a record that several lives wrote, the frontier has confirmed one.
	where := make(map[crawl.RecordKey]string)
	if err := l.Reconcile(t.Context(), "docs", 1, confirmedAtFirstSight(where, dir, t)); err != nil {
		t.Fatal(err)
	}
	if n := unfinished(t, dir); n != 0 {
		t.Errorf("%d temporary files left", n)
	}
	got := ids(t, dir)
	if len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Error("a record has two lines")
	}
	for want := range durable {
		if _, ok := slices.BinarySearch(got, want); !ok {
			t.Errorf("record %s was durable and is gone", want)
		}
	}
	for r, err := range results.Records(dir, "docs", 1, results.All) {
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(load(t, dir, *r.Body))
		if hex.EncodeToString(sum[:]) != r.SHA256 {
			t.Errorf("body of %s is another one", r.ID)
		}
	}
}

// confirmedAtFirstSight confirms each key in the first file that has it.
func confirmedAtFirstSight(where map[crawl.RecordKey]string, dir string, t *testing.T) results.Confirmed {
	entries, err := os.ReadDir(runDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".jsonl") {
			continue
		}
		for line := range strings.Lines(content(t, dir, e.Name())) {
			_, rest, ok := strings.Cut(line, `"id":"`)
			if !ok || !strings.HasSuffix(line, "\n") {
				continue
			}
			k := crawl.RecordKey{ID: rest[:32]}
			if where[k] == "" {
				where[k] = e.Name()
			}
		}
	}
	return confirmedIn(where)
}

func TestADiskThatIsFullLeavesNoTornLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := start(t, "limit", dir).Run(); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, dir); !slices.Equal(got, []string{id(1), id(3), id(4)}) {
		t.Errorf("lines %v", got)
	}
	if n := unfinished(t, dir); n != 0 {
		t.Errorf("%d temporary files left", n)
	}
}

// childHitsTheLimit meets a real refusal of write(2) in the middle of a line: the
// process's limit on the size of a file.
func childHitsTheLimit(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	l, err := results.OpenLocal(dir, results.LocalOptions{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := l.Append(ctx, record(1, crawl.Completed)); err != nil {
		return err
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	tight := syscall.Rlimit{Cur: 1000, Max: old.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &tight); err != nil {
		return err
	}
	big := record(2, crawl.Completed)
	big.Rule = strings.Repeat("x", 2000)
	if _, err := l.Append(ctx, big); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("append over the limit: %v", err)
	}
	b, err := l.NewBody(ctx, "docs", 1)
	if err != nil {
		return err
	}
	_, werr := b.Write(noise(300<<10, 1))
	if _, _, err := b.Commit(); err == nil || !errors.Is(werr, syscall.EFBIG) {
		return fmt.Errorf("body over the limit: write %v, commit %v", werr, err)
	}
	// What fits is written still, and all of it once there is room again.
	if _, err := l.Append(ctx, record(3, crawl.Completed)); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if _, err := l.Append(ctx, record(4, crawl.Completed)); err != nil {
		return err
	}
	return l.Close()
}
