package results_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/internal/crawl"
	"holdfast/internal/results"
)

// lay writes a dead process's record file.
func lay(t testing.TB, dir, file string, tail string, ns ...int) {
	t.Helper()
	var b strings.Builder
	for i, n := range ns {
		fmt.Fprintf(&b, `{"schema":1,"campaign":"docs","run":1,"replay":0,"id":"%s","n":%d,"state":"completed"}`+"\n", id(n), i)
	}
	b.WriteString(tail)
	if err := os.MkdirAll(runDir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(runDir(dir), file), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func key(n int) crawl.RecordKey { return crawl.RecordKey{ID: id(n)} }

func TestReconcile(t *testing.T) {
	t.Parallel()
	const mine, other = "pages-w1-0001.jsonl", "pages-w2-0001.jsonl"
	for name, c := range map[string]struct {
		mine  []int
		tail  string
		where map[crawl.RecordKey]string
		want  []int
	}{
		"keeps what is confirmed here":                {mine: []int{1, 2}, where: map[crawl.RecordKey]string{key(1): mine, key(2): mine}, want: []int{1, 2}},
		"keeps what is confirmed nowhere":             {mine: []int{1, 2}, want: []int{1, 2}},
		"drops what is confirmed elsewhere":           {mine: []int{1, 2, 3}, where: map[crawl.RecordKey]string{key(2): other}, want: []int{1, 3}},
		"drops a second line of one key":              {mine: []int{1, 2, 1}, want: []int{1, 2}},
		"cuts a torn tail":                            {mine: []int{1}, tail: `{"schema":1,"id":"00`, want: []int{1}},
		"cuts a whole record without its newline":     {mine: []int{1}, tail: `{"schema":1,"id":"` + id(9) + `","replay":0}`, want: []int{1}},
		"drops a page of zeros that a power cut left": {mine: []int{1}, tail: strings.Repeat("\x00", 4096) + "\n", want: []int{1}},
		"cuts the tail and drops at once":             {mine: []int{1, 2}, tail: "{", where: map[crawl.RecordKey]string{key(1): other}, want: []int{2}},
		"empties a file that lost every line":         {mine: []int{1}, where: map[crawl.RecordKey]string{key(1): other}, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lay(t, dir, mine, c.tail, c.mine...)
			l := open(t, dir, results.LocalOptions{})
			if err := l.Reconcile(t.Context(), "docs", 1, confirmedIn(c.where)); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, n := range c.want {
				want = append(want, id(n))
			}
			if got := ids(t, dir); !slices.Equal(got, want) {
				t.Errorf("lines %v, want %v", got, want)
			}
		})
	}
}

func TestReconcileTouchesNothingThatIsClean(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lay(t, dir, "pages-w1-0001.jsonl", "", 1, 2, 3)
	l := open(t, dir, results.LocalOptions{})
	path := filepath.Join(runDir(dir), "pages-w1-0001.jsonl")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Reconcile(t.Context(), "docs", 1, nothing); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("a clean file was written")
	}
}

func TestReconcileLeavesALiveWritersFileAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alive := open(t, dir, results.LocalOptions{Worker: "alive"})
	file := mustAppend(t, alive, record(1, crawl.Completed))
	l := open(t, dir, results.LocalOptions{})
	elsewhere := confirmedIn(map[crawl.RecordKey]string{key(1): "pages-w9-0001.jsonl"})
	if err := l.Reconcile(t.Context(), "docs", 1, elsewhere); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, dir); len(got) != 1 {
		t.Errorf("lines %v: a live writer's line was taken", got)
	}
	// The writer itself takes it, out of the middle, and goes on in the same file.
	mustAppend(t, alive, record(2, crawl.Completed))
	if err := alive.Reconcile(t.Context(), "docs", 1, elsewhere); err != nil {
		t.Fatal(err)
	}
	if again := mustAppend(t, alive, record(3, crawl.Completed)); again != file {
		t.Errorf("goes on in %s", again)
	}
	if got := ids(t, dir); !slices.Equal(got, []string{id(2), id(3)}) {
		t.Errorf("lines %v", got)
	}
	// And the file that it swapped in is as locked as the first.
	if err := l.Reconcile(t.Context(), "docs", 1, confirmedIn(map[crawl.RecordKey]string{key(2): "pages-w9-0001.jsonl"})); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, dir); len(got) != 2 {
		t.Errorf("lines %v after the swap", got)
	}
}

func TestReconcileAsksInBatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var ns []int
	for i := range 1203 {
		ns = append(ns, i)
	}
	lay(t, dir, "pages-w1-0001.jsonl", "", ns...)
	l := open(t, dir, results.LocalOptions{})
	var asked []int
	err := l.Reconcile(t.Context(), "docs", 1, func(keys []crawl.RecordKey) ([]string, error) {
		asked = append(asked, len(keys))
		return make([]string, len(keys)), nil
	})
	if err != nil || !slices.Equal(asked, []int{500, 500, 203}) {
		t.Errorf("asked %v, %v", asked, err)
	}
}

func TestReconcileChangesNothingWhenTheFrontierIsAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lay(t, dir, "pages-w1-0001.jsonl", "{torn", 1, 1, 2)
	before := content(t, dir, "pages-w1-0001.jsonl")
	l := open(t, dir, results.LocalOptions{})
	away := errors.New("redis is away")
	err := l.Reconcile(t.Context(), "docs", 1, func([]crawl.RecordKey) ([]string, error) { return nil, away })
	if !errors.Is(err, away) {
		t.Errorf("error %v", err)
	}
	if content(t, dir, "pages-w1-0001.jsonl") != before {
		t.Error("the file was changed")
	}
	if err := l.Reconcile(t.Context(), "docs", 7, nothing); err != nil {
		t.Errorf("a run without a folder: %v", err)
	}
}

// Whatever lies in the files and whatever is confirmed where: no confirmed line
// is lost, no confirmed key keeps a line elsewhere, no file keeps a key twice,
// and what is confirmed nowhere stays.
func TestReconcileNeverLosesAConfirmedRecord(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		dir := filepath.Join(top, fmt.Sprint(round))
		files := []string{"pages-a-0001.jsonl", "pages-b-0001.jsonl", "failures-a-0001.jsonl"}
		in := make(map[string][]int)
		where := make(map[crawl.RecordKey]string)
		for _, f := range files {
			in[f] = rapid.SliceOfN(rapid.IntRange(0, 12), 0, 12).Draw(rt, f)
			tail := rapid.SampledFrom([]string{"", "{", `{"id":"` + id(3), "\x00\x00", "\x00\x00\n"}).Draw(rt, "tail")
			lay(t, dir, f, tail, in[f]...)
			for _, n := range in[f] {
				if rapid.Bool().Draw(rt, "confirmed") {
					where[key(n)] = f
				}
			}
		}
		l, err := results.OpenLocal(dir, results.LocalOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		for range 2 { // the second finds nothing to do
			if err := l.Reconcile(t.Context(), "docs", 1, confirmedIn(where)); err != nil {
				rt.Fatal(err)
			}
		}
		for _, f := range files {
			var want []string
			for _, n := range in[f] {
				w := where[key(n)]
				if (w == "" || w == f) && !slices.Contains(want, id(n)) {
					want = append(want, id(n))
				}
			}
			var got []string
			for line := range strings.Lines(content(t, dir, f)) {
				_, rest, _ := strings.Cut(line, `"id":"`)
				got = append(got, rest[:32])
			}
			if !slices.Equal(got, want) {
				rt.Errorf("%s: %v, want %v", f, got, want)
			}
		}
	})
}
