package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/gofrs/flock"

	"holdfast/internal/crawl"
)

// keyOf reads a line's key; false for a line that is no record.
func keyOf(line []byte) (crawl.RecordKey, bool) {
	var k struct {
		ID     string `json:"id"`
		Replay int    `json:"replay"`
	}
	if err := json.Unmarshal(line, &k); err != nil || k.ID == "" {
		return crawl.RecordKey{}, false
	}
	return crawl.RecordKey{ID: k.ID, Replay: k.Replay}, true
}

// lines calls each with every whole line of r, newline included, and returns
// their size together and whether bytes without a newline follow. The slice is
// each's only until it returns.
func lines(r io.Reader, each func(line []byte) error) (size int64, torn bool, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		part, err := br.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
			continue
		case errors.Is(err, io.EOF):
			return size, len(long)+len(part) > 0, nil
		case err != nil:
			return size, false, err
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		size += int64(len(line))
		if err := each(line); err != nil {
			return size, false, err
		}
		long = long[:0]
	}
}

// sieve decides line by line what a cleaned file keeps: not the keys in drop, not
// a key's second line, not what a power cut left of a page that was never synced.
// A line that is no record for another reason is somebody's and stays.
type sieve struct {
	drop map[crawl.RecordKey]bool
	seen map[[16]byte]struct{}
}

func (s *sieve) keeps(line []byte) bool {
	if bytes.IndexByte(line, 0) >= 0 {
		return false
	}
	key, ok := keyOf(line)
	if !ok {
		return true
	}
	if s.drop[key] {
		return false
	}
	h := hashKey(key)
	if _, again := s.seen[h]; again {
		return false
	}
	s.seen[h] = struct{}{}
	return true
}

// rewrite replaces a held file by one without the lines that the sieve takes
// out, and returns the new file, held, and its size. On an error the old one is
// returned as it was; either way exactly one is held.
func (l *Local) rewrite(old *held, name string, drop map[crawl.RecordKey]bool) (*held, int64, error) {
	oldSize := func() int64 {
		if info, err := old.f.Stat(); err == nil {
			return info.Size()
		}
		return 0
	}
	f, tmp, err := l.temp()
	if err != nil {
		return old, oldSize(), fmt.Errorf("create rewritten file: %w", err)
	}
	size, dropped, err := copyKept(f, old.f, drop)
	if err == nil {
		err = l.sync(f)
	}
	next := &held{f: f, lock: flock.New(filepath.Join(l.dir, filepath.FromSlash(tmp)), flock.SetFlag(os.O_RDWR))}
	if err == nil {
		// Locked before it gets its name, so that there is no moment in which the
		// file of a live writer looks free.
		var ok bool
		if ok, err = next.lock.TryLock(); err == nil && !ok {
			err = errBusy
		}
	}
	if err == nil {
		err = l.root.Rename(tmp, name)
	}
	if err != nil {
		_ = next.close()
		_ = l.root.Remove(tmp)
		return old, oldSize(), fmt.Errorf("rewrite file: %w", err)
	}
	l.stats.dropped.Add(dropped)
	_ = old.close()
	if err := syncDir(l.root, path.Dir(name)); err != nil {
		return next, size, fmt.Errorf("rewrite file: %w", err)
	}
	return next, size, nil
}

func copyKept(to io.Writer, from *os.File, drop map[crawl.RecordKey]bool) (size, dropped int64, err error) {
	info, err := from.Stat()
	if err != nil {
		return 0, 0, err
	}
	w := bufio.NewWriterSize(to, 64<<10)
	s := sieve{drop: drop, seen: make(map[[16]byte]struct{})}
	_, _, err = lines(io.NewSectionReader(from, 0, info.Size()), func(line []byte) error {
		if !s.keeps(line) {
			dropped++
			return nil
		}
		size += int64(len(line))
		_, err := w.Write(line)
		return err
	})
	return size, dropped, errors.Join(err, w.Flush())
}
