package results

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
)

// ErrClosed is returned by a sink after Close.
var ErrClosed = errors.New("results: sink is closed")

// LocalOptions configure a local sink.
type LocalOptions struct {
	// Worker is part of the record files' names. Default "worker".
	Worker string
	// MaxFile is the size at which a record file is followed by the next. Default 256 MiB.
	MaxFile int64
	// MaxOpen is the number of record files held open; above it the one that
	// rested longest is closed. Default 32.
	MaxOpen int
}

// Stats counts what a sink did since it was opened.
type Stats struct {
	// Records counts the lines written, Repeated the appends that found their
	// line already there, Dropped the lines removed again.
	Records, Repeated, Dropped int64
	// Syncs counts the fsyncs of record files.
	Syncs int64
	// Bodies counts the bodies committed, Shared those whose content was there already.
	Bodies, Shared int64
}

// Local is a sink on the local disk. Its methods are safe for concurrent use.
// Several processes may share a folder.
type Local struct {
	opts   LocalOptions
	dir    string
	root   *os.Root
	tmp    string // this writer's folder for unfinished files
	writer *held  // its lock: held as long as this process lives
	tmpSeq atomic.Int64
	enc    *zstd.Encoder
	sync   func(*os.File) error

	mu      sync.Mutex
	streams map[streamKey]*stream
	clock   int64 // counts uses of streams, for MaxOpen
	closed  bool

	stats struct{ records, repeated, dropped, syncs, bodies, shared atomic.Int64 }
}

// OpenLocal opens the sink in dir, which is made if it is not there, and removes
// what writers that died there left unfinished.
func OpenLocal(dir string, opts LocalOptions) (*Local, error) {
	opts.Worker = cleanWorker(opts.Worker)
	if opts.MaxFile <= 0 {
		opts.MaxFile = 256 << 20
	}
	if opts.MaxOpen <= 0 {
		opts.MaxOpen = 32
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	// One encoder for all bodies: its EncodeAll may be called from many sides and
	// has at most two blocks in memory at once.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(chunkSize), zstd.WithZeroFrames(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open results: %w", err), root.Close())
	}
	l := &Local{
		opts: opts, dir: abs, root: root, enc: enc, sync: (*os.File).Sync,
		streams: make(map[streamKey]*stream),
	}
	if err := l.openWriter(); err != nil {
		return nil, errors.Join(fmt.Errorf("open results: %w", err), enc.Close(), root.Close())
	}
	return l, nil
}

// openWriter takes a folder for unfinished files and clears away those of writers
// whose lock is free.
func (l *Local) openWriter() error {
	if err := mkdirs(l.root, tmpDir); err != nil {
		return err
	}
	entries, err := readDir(l.root, tmpDir)
	if err != nil {
		return err
	}
	last := 0
	for _, e := range entries {
		if n, ok := numberOf(e.Name(), l.opts.Worker, ""); ok {
			last = max(last, n)
		}
		clearWriter(l.root, path.Join(tmpDir, e.Name()))
	}
	for n := last + 1; n < last+10_000; n++ {
		dir := path.Join(tmpDir, numbered(l.opts.Worker, n, ""))
		if err := l.root.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		lock := path.Join(dir, lockFile)
		f, err := l.root.OpenFile(lock, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrNotExist) {
			continue // somebody who opens took it for a dead writer's
		}
		if err != nil {
			return err
		}
		_ = f.Close()
		h, err := hold(l.root, lock)
		if errors.Is(err, errBusy) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		l.tmp, l.writer = dir, h
		return nil
	}
	return fmt.Errorf("take a writer's folder: %w", os.ErrExist)
}

// clearWriter removes a dead writer's folder. What cannot be removed now is
// tried again at the next open: it costs space and nothing else.
func clearWriter(root *os.Root, dir string) {
	h, err := hold(root, path.Join(dir, lockFile))
	if errors.Is(err, os.ErrNotExist) {
		// Killed between making the folder and its lock, or about to make it:
		// only an old and empty one is a dead writer's.
		if info, err := root.Stat(dir); err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = root.Remove(dir)
		}
		return
	}
	if err != nil {
		return
	}
	_ = root.RemoveAll(dir)
	_ = h.close()
}

// Dir returns the sink's folder.
func (l *Local) Dir() string { return l.dir }

// Location returns where the sink writes.
func (l *Local) Location() Location { return Location{Scheme: "file", Dir: l.dir} }

// Stats returns what the sink did so far.
func (l *Local) Stats() Stats {
	s := &l.stats
	return Stats{
		Records: s.records.Load(), Repeated: s.repeated.Load(), Dropped: s.dropped.Load(),
		Syncs: s.syncs.Load(), Bodies: s.bodies.Load(), Shared: s.shared.Load(),
	}
}

// Close waits for appends that are under way, closes the record files and
// releases their locks. Bodies still open fail at their Commit.
func (l *Local) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	streams := l.streams
	l.streams = nil
	l.mu.Unlock()

	var errs []error
	for _, s := range streams {
		errs = append(errs, s.close())
	}
	errs = append(errs, l.root.RemoveAll(l.tmp), l.writer.close(), l.enc.Close(), l.root.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close results: %w", err)
	}
	return nil
}
