package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// errBusy: another process, or another handle of this one, holds the file.
var errBusy = errors.New("results: file is held by a live writer")

// readDir lists a folder, sorted by name.
func readDir(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// syncDir makes the names in a folder durable.
func syncDir(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// mkdirs makes dir and its parents, each durable in its own parent.
func mkdirs(root *os.Root, dir string) error {
	if _, err := root.Stat(dir); err == nil {
		return nil
	}
	if parent := path.Dir(dir); parent != "." {
		if err := mkdirs(root, parent); err != nil {
			return err
		}
	}
	if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(root, path.Dir(dir))
}

// writeAtomic puts content at name by way of a temporary file: readers see all
// of it or nothing. Temporary files of a writer that died lie in its own folder
// and go with it.
func (l *Local) writeAtomic(name string, content []byte) error {
	f, tmp, err := l.temp()
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = l.root.Rename(tmp, name)
	}
	if err != nil {
		_ = l.root.Remove(tmp)
		return err
	}
	return syncDir(l.root, path.Dir(name))
}

// temp creates a file in this writer's own folder.
func (l *Local) temp() (*os.File, string, error) {
	name := path.Join(l.tmp, fmt.Sprintf("%d", l.tmpSeq.Add(1)))
	f, err := l.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	return f, name, err
}

// held is a file under an exclusive lock. The lock has a handle of its own, so
// that it outlives a rename of the file.
type held struct {
	f    *os.File
	lock *flock.Flock
}

func (h *held) close() error { return errors.Join(h.f.Close(), h.lock.Close()) }

// hold opens and locks a file that exists; errBusy if somebody else holds it.
//
// Whoever replaces a file holds the lock of the old one while it does, so after
// taking a lock the name must still mean the file that was locked.
func hold(root *os.Root, name string) (*held, error) {
	for range 100 {
		lock := flock.New(filepath.Join(root.Name(), filepath.FromSlash(name)), flock.SetFlag(os.O_RDWR))
		ok, err := lock.TryLock()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errors.Join(errBusy, lock.Close())
		}
		f, err := root.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		h := &held{f: f, lock: lock}
		if same(h) {
			return h, nil
		}
		_ = h.close()
	}
	return nil, errBusy
}

func same(h *held) bool {
	a, errA := h.f.Stat()
	b, errB := h.lock.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// holdSoon is hold for a file that nobody holds for long: it asks again until
// the file is free, patience runs out or ctx ends.
func holdSoon(ctx context.Context, root *os.Root, name string, patience time.Duration) (*held, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		h, err := hold(root, name)
		if !errors.Is(err, errBusy) {
			return h, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// createNumbered makes the next file of a series, locked and durable by name:
// dir/prefix-0007ext. The number is one above the highest there is.
func createNumbered(root *os.Root, dir, prefix, ext string) (*held, string, error) {
	entries, err := readDir(root, dir)
	if err != nil {
		return nil, "", err
	}
	last := 0
	for _, e := range entries {
		if n, ok := numberOf(e.Name(), prefix, ext); ok {
			last = max(last, n)
		}
	}
	for n := last + 1; n < last+10_000; n++ {
		name := path.Join(dir, numbered(prefix, n, ext))
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		_ = f.Close()
		// A cleaner may look at the empty file before it is locked; it leaves it
		// as it is and lets go at once.
		h, err := holdSoon(context.Background(), root, name, 2*time.Second)
		if errors.Is(err, errBusy) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if err := syncDir(root, dir); err != nil {
			return nil, "", errors.Join(err, h.close())
		}
		return h, name, nil
	}
	return nil, "", fmt.Errorf("number file %s: %w", prefix, fs.ErrExist)
}
