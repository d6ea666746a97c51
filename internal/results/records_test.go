package results_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/results"
)

func TestARecordIsOneReadableLineInItsStream(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{Worker: "host/1 ü"})
	page, failure := mustAppend(t, l, record(1, crawl.Completed)), mustAppend(t, l, record(2, crawl.Skipped))
	if page != "pages-host_1___-0001.jsonl" || failure != "failures-host_1___-0001.jsonl" {
		t.Fatalf("files %q and %q", page, failure)
	}
	line := content(t, dir, page)
	if strings.Count(line, "\n") != 1 || !strings.Contains(line, "?a=1&b=<2>") {
		t.Errorf("line %q", line)
	}
	for _, want := range []string{`"schema":1`, `"reason":null`, `"attempts":[]`, `"unchanged":false`} {
		if !strings.Contains(line, want) {
			t.Errorf("line %q lacks %s", line, want)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), results.LocalOptions{})
	for name, change := range map[string]func(*crawl.Record){
		"a campaign that leaves the folder":       func(r *crawl.Record) { r.Campaign = "../docs" },
		"a hidden campaign":                       func(r *crawl.Record) { r.Campaign = ".tmp" },
		"a campaign without a name":               func(r *crawl.Record) { r.Campaign = "" },
		"a run that was never counted":            func(r *crawl.Record) { r.Run = 0 },
		"a state that is no end":                  func(r *crawl.Record) { r.State = crawl.Running },
		"metadata that is no JSON":                func(r *crawl.Record) { r.Meta = []byte("{") },
		"a campaign with a line feed in its name": func(r *crawl.Record) { r.Campaign = "a\nb" },
	} {
		r := record(1, crawl.Completed)
		change(&r)
		if _, err := l.Append(t.Context(), r); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// gate is an fsync that tells when it runs and waits to be let through.
type gate struct{ entered, pass chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}), make(chan struct{})} }

func (g *gate) sync(f *os.File) error {
	g.entered <- struct{}{}
	<-g.pass
	return f.Sync()
}

func waitQueued(t *testing.T, l *results.Local, n int) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(10 * time.Second); results.Queued(l, "docs", 1, results.Pages) != n; <-poll.C {
		if time.Now().After(end) {
			t.Fatalf("never saw %d appends queued", n)
		}
	}
}

func TestAppendsThatArriveDuringAnFsyncShareTheNext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	g := newGate()
	results.SetSync(l, g.sync)

	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, l, record(0, crawl.Completed)) })
	<-g.entered // the first is being synced
	const n = 50
	for i := range n {
		wg.Go(func() { mustAppend(t, l, record(1+i, crawl.Completed)) })
		waitQueued(t, l, i+1)
	}
	g.pass <- struct{}{}
	<-g.entered
	if got := results.Queued(l, "docs", 1, results.Pages); got != 0 {
		t.Errorf("%d appends left out of the second fsync", got)
	}
	g.pass <- struct{}{}
	wg.Wait()
	if s := l.Stats(); s.Syncs != 2 || s.Records != n+1 {
		t.Errorf("stats %+v, want 2 syncs of %d records", s, n+1)
	}
	// They lie in the order in which they came.
	var got []string
	for r, err := range results.Records(dir, "docs", 1, results.Pages) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.ID)
	}
	if !slices.IsSorted(got) || len(got) != n+1 {
		t.Errorf("order %v", got)
	}
}

func TestAnAppendReturnsOnlyAfterItsFsync(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), results.LocalOptions{})
	g := newGate()
	results.SetSync(l, g.sync)
	done := make(chan struct{})
	go func() { defer close(done); mustAppend(t, l, record(0, crawl.Completed)) }()
	<-g.entered
	select {
	case <-done:
		t.Error("returned before the fsync did")
	default:
	}
	g.pass <- struct{}{}
	<-done
}

func TestACanceledAppendLeavesTheQueueAndNoLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	g := newGate()
	results.SetSync(l, g.sync)
	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, l, record(0, crawl.Completed)) })
	<-g.entered
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { _, err := l.Append(ctx, record(1, crawl.Completed)); failed <- err }()
	waitQueued(t, l, 1)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	g.pass <- struct{}{}
	wg.Wait()
	if got := ids(t, dir); !slices.Equal(got, []string{id(0)}) {
		t.Errorf("lines %v", got)
	}
}

func TestAFailedFsyncLeavesNoLineAndTheNextAppendTakesANewFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	mustAppend(t, l, record(0, crawl.Completed))
	results.SetSync(l, func(*os.File) error { return errors.New("disk on fire") })
	if _, err := l.Append(t.Context(), record(1, crawl.Completed)); err == nil {
		t.Fatal("no error")
	}
	results.SetSync(l, (*os.File).Sync)
	if file := mustAppend(t, l, record(1, crawl.Completed)); file != "pages-w1-0002.jsonl" {
		t.Errorf("file %s", file)
	}
	if got := ids(t, dir); !slices.Equal(got, []string{id(0), id(1)}) {
		t.Errorf("lines %v", got)
	}
}

func TestTheSameRecordTwiceIsOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	a, b := mustAppend(t, l, record(1, crawl.Completed)), mustAppend(t, l, record(1, crawl.Completed))
	if a != b || len(ids(t, dir)) != 1 || l.Stats().Repeated != 1 {
		t.Errorf("files %s and %s, lines %v", a, b, ids(t, dir))
	}
	// Another end of the same request is another claim: the file tells them apart.
	c := mustAppend(t, l, record(2, crawl.Failed))
	d := mustAppend(t, l, record(2, crawl.StateCanceled))
	if c == d {
		t.Errorf("two ends of one request in %s", c)
	}
	// A replay is a record of its own.
	r := record(1, crawl.Completed)
	r.Replay = 1
	mustAppend(t, l, r)
	if n := len(ids(t, dir)); n != 4 {
		t.Errorf("%d lines", n)
	}
}

func TestAFullFileIsFollowedByTheNext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{MaxFile: 1000})
	files := map[string]int{}
	for i := range 20 {
		files[mustAppend(t, l, record(i, crawl.Completed))]++
	}
	if len(files) < 3 || len(ids(t, dir)) != 20 {
		t.Errorf("files %v", files)
	}
}

func TestEachProcessWritesFilesOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := open(t, dir, results.LocalOptions{}), open(t, dir, results.LocalOptions{})
	if x, y := mustAppend(t, a, record(1, crawl.Completed)), mustAppend(t, b, record(2, crawl.Completed)); x == y {
		t.Errorf("both write to %s", x)
	}
}

func TestOnlyAFewFilesAreHeldOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{MaxOpen: 2})
	for i := range 12 {
		r := record(i, crawl.Completed)
		r.Run = 1 + i%4
		mustAppend(t, l, r)
	}
	for run := 1; run <= 4; run++ {
		n := 0
		for _, err := range results.Records(dir, "docs", run, results.All) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 3 {
			t.Errorf("run %d has %d records", run, n)
		}
	}
}

func TestAClosedSinkSaysSo(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), results.LocalOptions{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), record(1, crawl.Completed)); !errors.Is(err, results.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

func TestManyAppendersDroppersAndAReconcilerAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{MaxFile: 20_000})
	where := sync.Map{}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 40 {
				r := record(w*1000+i, crawl.Completed)
				file := mustAppend(t, l, r)
				if i%5 == 0 {
					if err := l.Drop(t.Context(), r, file); err != nil {
						t.Error(err)
					}
					continue
				}
				where.Store(r.Key(), file)
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			err := l.Reconcile(t.Context(), "docs", 1, func(keys []crawl.RecordKey) ([]string, error) {
				out := make([]string, len(keys))
				for i, k := range keys {
					if f, ok := where.Load(k); ok {
						out[i] = f.(string)
					}
				}
				return out, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	got := ids(t, dir)
	if len(got) != 8*32 || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("%d lines", len(got))
	}
}

func TestDropTakesOnlyThatLine(t *testing.T) {
	t.Parallel()
	for name, victim := range map[string]int{"the last": 9, "one in the middle": 4, "the first": 0, "one that is not there": 77} {
		for _, closed := range []bool{false, true} {
			dir := t.TempDir()
			l := open(t, dir, results.LocalOptions{})
			var want []string
			file := ""
			for i := range 10 {
				file = mustAppend(t, l, record(i, crawl.Completed))
				if i != victim {
					want = append(want, id(i))
				}
			}
			by := l
			if closed {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				by = open(t, dir, results.LocalOptions{})
			}
			if err := by.Drop(t.Context(), record(victim, crawl.Completed), file); err != nil {
				t.Fatal(err)
			}
			if got := ids(t, dir); !slices.Equal(got, want) {
				t.Errorf("%s (closed %v): lines %v", name, closed, got)
			}
			// The file is still good to write to, and a dropped record may come again.
			mustAppend(t, by, record(victim, crawl.Completed))
			if got := len(ids(t, dir)); got != len(want)+1 {
				t.Errorf("%s (closed %v): %d lines after another append", name, closed, got)
			}
		}
	}
}

func TestDropRefusesANameThatIsNotARecordFiles(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), results.LocalOptions{})
	for _, name := range []string{"run.json", "../pages-w1-0001.jsonl", "pages-/../x.jsonl", ""} {
		if err := l.Drop(t.Context(), record(1, crawl.Completed), name); !errors.Is(err, results.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := l.Drop(t.Context(), record(1, crawl.Completed), "pages-w9-0009.jsonl"); err != nil {
		t.Errorf("a file that is gone: %v", err)
	}
}
