package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const segmentMagic = "hfjrnl1\n"

func segmentName(index int) string { return fmt.Sprintf("journal-%04d", index) }

// log is the open segment and the records on their way to it. Two locks, taken
// in this order: writing, state.
type log struct {
	dir   string
	limit int // records between two snapshots

	state   *sync.Mutex // the server's, held for each step
	pending builder     // records not yet handed to the system
	opened  bool        // pending ends in an open record
	seq     uint64      // the last record's number
	records int         // since the snapshot

	writing sync.Mutex
	file    *os.File
	index   int
	off     int64 // where the next record goes
	spare   []byte
	dirty   bool // not synced

	written atomic.Uint64         // records up to here are with the system
	failed  atomic.Bool           // the last write failed; pending has it again
	broken  atomic.Pointer[error] // the segment is beyond use
}

// begin opens a record. Under state, as abandon, end and due.
func (l *log) begin(at time.Time) *builder {
	l.pending.open(at, l.seq+1)
	l.opened = true
	return &l.pending
}

func (l *log) abandon() {
	if l.opened {
		l.pending.drop()
		l.opened = false
	}
}

// end closes the record, or drops it if nothing changed, and returns the number
// up to which the journal must be written before the step may be told of.
func (l *log) end() uint64 {
	if l.pending.empty() {
		l.abandon()
		return l.seq
	}
	l.pending.close()
	l.opened = false
	l.seq++
	l.records++
	return l.seq
}

func (l *log) due() bool { return l.records >= l.limit }

// reach returns once the records up to need are with the system. Whoever comes
// first writes for all.
func (l *log) reach(need uint64) error {
	if l.written.Load() >= need {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.written.Load() >= need {
		return nil
	}
	return l.flush()
}

// retry says whether the journal takes records; after a failed write it tries again.
func (l *log) retry() error {
	if err := l.broken.Load(); err != nil {
		return *err
	}
	if !l.failed.Load() {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.flush()
}

// flush needs writing.
func (l *log) flush() error {
	l.state.Lock()
	buf, seq := l.take()
	l.state.Unlock()
	err := l.put(buf, seq)
	if err != nil {
		l.state.Lock()
		l.putBack(buf)
		l.state.Unlock()
	}
	return err
}

// hold runs f with nothing pending and nothing moving.
func (l *log) hold(f func() error) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.state.Lock()
	defer l.state.Unlock()
	buf, seq := l.take()
	if err := l.put(buf, seq); err != nil {
		l.putBack(buf)
		return err
	}
	return f()
}

func (l *log) take() ([]byte, uint64) {
	buf := l.pending.buf
	l.pending.buf, l.spare = l.spare[:0], nil
	return buf, l.seq
}

func (l *log) putBack(buf []byte) { l.pending.buf = append(buf, l.pending.buf...) }

func (l *log) put(buf []byte, seq uint64) error {
	if err := l.broken.Load(); err != nil {
		return *err
	}
	if len(buf) > 0 {
		if _, err := l.file.Write(buf); err != nil {
			l.failed.Store(true)
			if cut := l.file.Truncate(l.off); cut != nil {
				return l.breakOff(fmt.Errorf("cut a half-written record: %w", cut))
			}
			return fmt.Errorf("write record: %w", err)
		}
		l.off += int64(len(buf))
		l.dirty = true
	}
	if cap(buf) <= 4<<20 {
		l.spare = buf[:0]
	}
	l.failed.Store(false)
	l.written.Store(seq)
	return nil
}

// breakOff makes the log refuse all from here on.
func (l *log) breakOff(err error) error {
	l.broken.CompareAndSwap(nil, &err)
	return err
}

// sync makes what was written survive a power cut. A failed fsync may have lost
// pages for good, so it is not tried again.
func (l *log) sync() error {
	l.writing.Lock()
	f, dirty := l.file, l.dirty
	l.dirty = false
	l.writing.Unlock()
	if !dirty {
		return nil
	}
	if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		return l.breakOff(fmt.Errorf("sync journal: %w", err))
	}
	return nil // closed: whoever closed it synced it
}

// rotate goes on in a new segment. Needs both locks (hold).
func (l *log) rotate() error {
	f, off, err := createSegment(l.dir, l.index+1)
	if err != nil {
		return err
	}
	// The old one first: a power cut must not leave a gap before the new one.
	if err := l.file.Sync(); err != nil {
		return l.breakOff(errors.Join(fmt.Errorf("sync journal: %w", err), f.Close()))
	}
	if err := l.file.Close(); err != nil {
		return l.breakOff(errors.Join(fmt.Errorf("close journal: %w", err), f.Close()))
	}
	l.file, l.off, l.index, l.dirty, l.records = f, off, l.index+1, true, 0
	return nil
}

func createSegment(dir string, index int) (*os.File, int64, error) {
	path := filepath.Join(dir, segmentName(index))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("create journal: %w", err)
	}
	if _, err := f.WriteString(segmentMagic); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("create journal: %w", err), f.Close(), os.Remove(path))
	}
	if err := syncDir(dir); err != nil {
		return nil, 0, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, int64(len(segmentMagic)), nil
}

// reopenSegment opens the segment for appending, with all after off cut.
func reopenSegment(dir string, index int, off int64) (*os.File, int64, error) {
	if off < int64(len(segmentMagic)) {
		return createSegment(dir, index)
	}
	f, err := os.OpenFile(filepath.Join(dir, segmentName(index)), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open journal: %w", err)
	}
	if err := errors.Join(f.Truncate(off), f.Sync()); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("cut journal: %w", err), f.Close())
	}
	return f, off, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
