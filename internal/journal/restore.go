package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// restored is what a directory holds.
type restored struct {
	engine *engine
	at     time.Time // of the last record
	seq    uint64
	first  int   // the segment that goes on from the snapshot
	index  int   // the segment to append to
	off    int64 // where; what follows is a torn tail. 0: the segment is not there
	size   int64 // of that segment
	// records replayed from segments
	records int
}

// restore reads the directory and changes nothing in it.
func restore(dir string) (_ *restored, err error) {
	e, err := newEngine(&builder{})
	if err != nil {
		return nil, err
	}
	r := &restored{engine: e, index: 1}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	e.redis.ClockTTL(true)
	p := &replayer{engine: e, peer: server.NewPeer(bufio.NewWriter(io.Discard))}
	if err := r.readSnapshot(dir, p); err != nil {
		return nil, err
	}
	all, err := segments(dir)
	if err != nil {
		return nil, err
	}
	r.first = r.index
	all = slices.DeleteFunc(all, func(i int) bool { return i < r.first }) // a compaction died before it dropped them
	if all, err = withoutEmpty(dir, all); err != nil {
		return nil, err
	}
	for n, index := range all {
		if index != r.first+n {
			return nil, fmt.Errorf("%w: %s is missing", ErrCorrupt, segmentName(r.first+n))
		}
		if err := r.readSegment(dir, index, n == len(all)-1, p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// segments lists the indexes that are there, ascending.
func segments(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list journal: %w", err)
	}
	var all []int
	for _, e := range entries {
		var index int
		if n, _ := fmt.Sscanf(e.Name(), "journal-%d", &index); n == 1 && e.Name() == segmentName(index) {
			all = append(all, index)
		}
	}
	slices.Sort(all)
	return all, nil
}

// withoutEmpty leaves out the segments at the end that hold no record, but the
// first: whoever made them died before going on in them, and so the one before is
// the last, whose tail may be torn.
func withoutEmpty(dir string, all []int) ([]int, error) {
	for len(all) > 1 {
		path := filepath.Join(dir, segmentName(all[len(all)-1]))
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if info.Size() > int64(len(segmentMagic)) {
			break
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if !bytes.HasPrefix([]byte(segmentMagic), data) {
			break
		}
		all = all[:len(all)-1]
	}
	return all, nil
}

func (r *restored) readSnapshot(dir string, p *replayer) error {
	data, err := os.ReadFile(filepath.Join(dir, snapshotName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	rest, ok := bytes.CutPrefix(data, []byte(snapshotMagic))
	if !ok {
		return fmt.Errorf("%w: %s is not a snapshot of this version", ErrCorrupt, snapshotName)
	}
	for n := 0; ; n++ {
		var rec record
		at := len(data) - len(rest)
		if rec, rest, ok = next(rest); !ok || len(rec.commands) != 1 {
			return fmt.Errorf("%w: %s at byte %d", ErrCorrupt, snapshotName, at)
		}
		words := rec.commands[0]
		switch {
		case n == 0:
			if words[0] != cmdFrom || len(words) != 2 {
				return fmt.Errorf("%w: %s has no start", ErrCorrupt, snapshotName)
			}
			if r.index, err = strconv.Atoi(words[1]); err != nil {
				return fmt.Errorf("%w: %s has no start", ErrCorrupt, snapshotName)
			}
			r.at, r.seq = rec.at, rec.seq
		case words[0] == cmdEnd:
			return nil
		}
		if err := p.apply(rec); err != nil {
			return fmt.Errorf("%s at byte %d: %w", snapshotName, at, err)
		}
	}
}

func (r *restored) readSegment(dir string, index int, last bool, p *replayer) error {
	name := segmentName(index)
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	r.index, r.off, r.size = index, 0, int64(len(data))
	rest, ok := bytes.CutPrefix(data, []byte(segmentMagic))
	if !ok {
		if last && bytes.HasPrefix([]byte(segmentMagic), data) {
			return nil // died while it was made
		}
		return fmt.Errorf("%w: %s is not a journal of this version", ErrCorrupt, name)
	}
	for len(rest) > 0 {
		at := len(data) - len(rest)
		rec, after, ok := next(rest)
		if !ok {
			if !last {
				return fmt.Errorf("%w: %s at byte %d", ErrCorrupt, name, at)
			}
			break
		}
		if rec.seq != r.seq+1 {
			return fmt.Errorf("%w: %s at byte %d: record %d after %d", ErrCorrupt, name, at, rec.seq, r.seq)
		}
		if err := p.apply(rec); err != nil {
			return fmt.Errorf("%s at byte %d: %w", name, at, err)
		}
		r.at, r.seq, rest = rec.at, rec.seq, after
		r.records++
	}
	r.off = int64(len(data) - len(rest))
	return nil
}

// replayer applies records to an engine.
type replayer struct {
	engine *engine
	peer   *server.Peer
}

func (p *replayer) apply(rec record) error {
	e := p.engine
	e.at(rec.at)
	for _, words := range rec.commands {
		switch {
		case kinds[words[0]] == write:
			e.deadlines = e.deadlines || setsDeadline(words)
			e.run(p.peer, words)
		case words[0] == cmdFrom && len(words) == 2:
		case words[0] == cmdTTL && len(words) == 3:
			ttl, err := remaining(words[2], rec.at)
			if err != nil {
				return err
			}
			e.deadlines = true
			e.redis.DB(0).SetTTL(words[1], ttl)
		case words[0] == cmdField && len(words) == 4:
			ttl, err := remaining(words[3], rec.at)
			if err != nil {
				return err
			}
			e.deadlines = true
			e.redis.DB(0).HExpire(words[1], words[2], ttl)
		default:
			return fmt.Errorf("%w: a record of %q", ErrCorrupt, printable(words[0]))
		}
	}
	return nil
}

func remaining(word string, at time.Time) (time.Duration, error) {
	ns, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: a deadline of %q", ErrCorrupt, printable(word))
	}
	return time.Unix(0, ns).Sub(at), nil
}
