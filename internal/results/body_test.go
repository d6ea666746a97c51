package results_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/results"
)

// noise returns n bytes that are half compressible, the same for one seed.
func noise(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(20))
	}
	return b
}

func store(t testing.TB, l *results.Local, data []byte, chunk int) (crawl.BodyRef, string) {
	t.Helper()
	b, err := l.NewBody(t.Context(), "docs", 1)
	if err != nil {
		t.Fatal(err)
	}
	for len(data) > 0 {
		n := min(chunk, len(data))
		if _, err := b.Write(data[:n]); err != nil {
			t.Fatal(err)
		}
		data = data[n:]
	}
	ref, sum, err := b.Commit()
	if err != nil {
		t.Fatal(err)
	}
	b.Discard() // a no-op after Commit
	return ref, sum
}

func load(t testing.TB, dir string, ref crawl.BodyRef) []byte {
	t.Helper()
	r, err := results.OpenBody(runDir(dir), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestABodyComesBackAsItWasWhateverItsSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	for _, size := range []int{0, 1, 20 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, 3 << 20} {
		data := noise(size, uint64(size))
		ref, sum := store(t, l, data, 7000)
		want := sha256.Sum256(data)
		if sum != hex.EncodeToString(want[:]) {
			t.Errorf("size %d: sum %s", size, sum)
		}
		if p := "bodies/" + sum[:2] + "/" + sum[2:4] + "/" + sum + ".zst"; ref.Store != "files" || ref.Path != p {
			t.Errorf("size %d: ref %+v", size, ref)
		}
		if !bytes.Equal(load(t, dir, ref), data) {
			t.Errorf("size %d: another body came back", size)
		}
	}
	if left := unfinished(t, dir); left != 0 {
		t.Errorf("%d temporary files left", left)
	}
}

// unfinished counts the files of writers under .tmp, their locks left out.
func unfinished(t testing.TB, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, ".tmp"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "lock" {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheSameContentIsStoredOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { store(t, l, noise(300<<10, 1), 10_000) })
	}
	wg.Wait()
	ref, _ := store(t, l, noise(300<<10, 1), 10_000)
	files := 0
	_ = filepath.WalkDir(filepath.Join(runDir(dir), "bodies"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
		}
		return err
	})
	if files != 1 || unfinished(t, dir) != 0 || l.Stats().Shared == 0 {
		t.Errorf("%d files, %d unfinished, %+v", files, unfinished(t, dir), l.Stats())
	}
	if !bytes.Equal(load(t, dir, ref), noise(300<<10, 1)) {
		t.Error("another body came back")
	}
}

func TestADiscardedBodyLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	b, err := l.NewBody(t.Context(), "docs", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(noise(1<<20, 3)); err != nil {
		t.Fatal(err)
	}
	if unfinished(t, dir) != 1 {
		t.Error("a large body is not on disk while it is written")
	}
	b.Discard()
	if unfinished(t, dir) != 0 {
		t.Error("a temporary file is left")
	}
	if _, _, err := b.Commit(); err == nil {
		t.Error("committed after Discard")
	}
	if _, err := b.Write([]byte("x")); err == nil {
		t.Error("written after Discard")
	}
}

func TestALargeBodyTakesLittleMemory(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	chunk := noise(64<<10, 5)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	b, err := l.NewBody(t.Context(), "docs", 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 1024 { // 64 MiB
		if _, err := b.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 8<<20 {
		t.Errorf("64 MiB of body hold %d bytes of heap", grown)
	}
	if _, _, err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestUnfinishedFilesOfADeadWriterGoAtTheNextOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alive := open(t, dir, results.LocalOptions{Worker: "alive"})
	b, err := alive.NewBody(t.Context(), "docs", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(noise(300<<10, 1)); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, ".tmp", "dead-0001")
	if err := os.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lock", "1", "2"} {
		if err := os.WriteFile(filepath.Join(dead, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir, results.LocalOptions{})
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the dead writer's folder: %v", err)
	}
	if _, _, err := b.Commit(); err != nil {
		t.Errorf("the live writer's body: %v", err)
	}
}

func TestOpenBodyRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	ref, _ := store(t, l, []byte("hello"), 10)
	for name, bad := range map[string]crawl.BodyRef{
		"a path that leaves the run": {Store: "files", Path: "../run-0001/" + ref.Path},
		"an absolute path":           {Store: "files", Path: "/etc/passwd"},
		"another store":              {Store: "warc", Path: ref.Path},
		"a path of the wrong shelf":  {Store: "files", Path: strings.Replace(ref.Path, "bodies/", "bodies/0", 1)},
		"no path":                    {Store: "files"},
	} {
		if _, err := results.OpenBody(runDir(dir), bad); !errors.Is(err, results.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
	missing := strings.Repeat("0", 64)
	_, err := results.OpenBody(runDir(dir), crawl.BodyRef{Store: "files", Path: "bodies/00/00/" + missing + ".zst"})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a body that is not there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(runDir(dir), ref.Path), []byte("no zstd"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := results.OpenBody(runDir(dir), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a damaged body was read without an error")
	}
}
