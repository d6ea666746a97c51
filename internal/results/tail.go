package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"time"

	"holdfast/internal/crawl"
)

// TailOptions say how much of a stream Tail gives.
type TailOptions struct {
	// Last is the number of newest records to begin with, by the time they ended. 0: none.
	Last int
	// Follow goes on with what is appended, until the context ends.
	Follow bool
	// Every is how often a followed run is looked at. Default 500 ms.
	Every time.Duration
}

// Tail gives the newest records of a run and then, if asked, those that are
// appended while it runs, each once. It ends without an error when ctx does.
func Tail(ctx context.Context, dir, campaign string, run int, stream Stream, o TailOptions) iter.Seq2[crawl.Record, error] {
	if o.Every <= 0 {
		o.Every = 500 * time.Millisecond
	}
	return func(yield func(crawl.Record, error) bool) {
		rel, err := runPath(campaign, run)
		if err != nil {
			yield(crawl.Record{}, err)
			return
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			yield(crawl.Record{}, fmt.Errorf("open results: %w", err))
			return
		}
		defer func() { _ = root.Close() }()
		t := &tail{root: root, dir: rel, stream: stream, at: make(map[string]position), seen: make(map[[16]byte]struct{})}

		var last []crawl.Record
		keep := func(r crawl.Record, err error) bool {
			if err == nil && o.Last > 0 {
				last = insertNewest(last, r, o.Last)
			}
			return true
		}
		if err := t.round(keep); err != nil {
			yield(crawl.Record{}, err)
			return
		}
		for _, r := range last {
			if !yield(r, nil) {
				return
			}
		}
		if !o.Follow {
			return
		}
		tick := time.NewTicker(o.Every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := t.round(yield); errors.Is(err, errStop) || err != nil && !yield(crawl.Record{}, err) {
				return
			}
		}
	}
}

// insertNewest keeps the n newest records in the order in which they ended.
func insertNewest(last []crawl.Record, r crawl.Record, n int) []crawl.Record {
	i, _ := slices.BinarySearchFunc(last, r, func(a, b crawl.Record) int { return cmp.Compare(a.Ended, b.Ended) })
	last = slices.Insert(last, i, r)
	if len(last) > n {
		last = slices.Delete(last, 0, 1)
	}
	return last
}

// tail remembers how far each file was read.
type tail struct {
	root   *os.Root
	dir    string
	stream Stream
	at     map[string]position
	seen   map[[16]byte]struct{}
}

type position struct {
	info  fs.FileInfo
	at    int64
	lines int
}

// round reads what is new in all files. A file that was replaced or cut is read
// from its beginning: seen passes over what was given already.
func (t *tail) round(yield func(crawl.Record, error) bool) error {
	files, err := recordFiles(t.root, t.dir, t.stream)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list record files: %w", err)
	}
	for _, file := range files {
		if err := t.file(file, yield); err != nil {
			return err
		}
	}
	return nil
}

func (t *tail) file(file string, yield func(crawl.Record, error) bool) error {
	f, err := t.root.Open(path.Join(t.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open record file: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	p := t.at[file]
	if p.info != nil && (!os.SameFile(p.info, info) || info.Size() < p.at) {
		p = position{}
	}
	if _, err := f.Seek(p.at, 0); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	n, err := decodeLines(f, file, p.lines, t.seen, yield)
	p.info, p.at = info, p.at+n
	t.at[file] = p
	if err != nil && !errors.Is(err, errStop) {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return err
}
