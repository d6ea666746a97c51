package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"holdfast/internal/crawl"
)

// Append writes a record to its stream (pages for completed, failures for the
// others) and returns the base name of its file once the line is durable. The
// same record appended again by this process, as long as it is among the last
// few thousand of its run, returns the first one's file and writes nothing.
//
// On an error (disk full) the file is as it was before.
func (l *Local) Append(ctx context.Context, r crawl.Record) (string, error) {
	run, err := runPath(r.Campaign, r.Run)
	if err != nil {
		return "", err
	}
	if !r.State.Terminal() {
		return "", fmt.Errorf("append record: state %q is no end", r.State)
	}
	line, err := encodeLine(r)
	if err != nil {
		return "", fmt.Errorf("encode record: %w", err)
	}
	key := streamKey{run: run, stream: StreamOf(r.State)}
	return l.onStream(ctx, key, &op{key: r.Key(), end: endingOf(r), line: line})
}

// encodeLine returns r as one line of JSON with its newline.
func encodeLine(r crawl.Record) ([]byte, error) {
	if r.Schema == 0 {
		r.Schema = crawl.RecordSchema
	}
	if r.Attempts == nil {
		r.Attempts = []crawl.Attempt{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // URLs stay readable and can be searched for
	err := enc.Encode(r)
	return b.Bytes(), err
}

// onStream runs o on the stream of key, opening it first if need be.
func (l *Local) onStream(ctx context.Context, key streamKey, o *op) (string, error) {
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		s, err := l.stream(key)
		if err != nil {
			return "", err
		}
		file, err := s.run(ctx, o)
		if !errors.Is(err, errStreamClosed) {
			return file, err
		}
	}
}

// stream returns the stream of key and closes the one that rested longest if
// there are too many.
func (l *Local) stream(key streamKey) (*stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	l.clock++
	if s, ok := l.streams[key]; ok {
		s.used = l.clock
		return s, nil
	}
	for len(l.streams) >= l.opts.MaxOpen && l.closeOldest() {
	}
	s := newStream(l, key)
	s.used = l.clock
	l.streams[key] = s
	return s, nil
}

func (l *Local) closeOldest() bool {
	var oldest *stream
	for _, s := range l.streams {
		if oldest == nil || s.used < oldest.used {
			oldest = s
		}
	}
	if oldest == nil || !oldest.closeIfIdle() {
		return false
	}
	delete(l.streams, oldest.key)
	return true
}

// openStream returns the stream of key if it is open.
func (l *Local) openStream(key streamKey) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[key]
}

// Drop removes this worker's own line of a record from file, because the
// frontier confirmed it in another one. No such line, or no such file: nothing
// to do.
func (l *Local) Drop(ctx context.Context, r crawl.Record, file string) error {
	run, err := runPath(r.Campaign, r.Run)
	if err != nil {
		return err
	}
	st, ok := streamOfFile(file)
	if !ok {
		return fmt.Errorf("%w: record file %q", ErrName, file)
	}
	drop := map[crawl.RecordKey]bool{r.Key(): true}
	if err := l.dropFrom(ctx, streamKey{run: run, stream: st}, file, drop); err != nil {
		return fmt.Errorf("drop record from %s: %w", file, err)
	}
	return nil
}

// dropFrom removes the lines of the keys in drop from a file that is open here
// or that nobody holds.
func (l *Local) dropFrom(ctx context.Context, key streamKey, file string, drop map[crawl.RecordKey]bool) error {
	errElsewhere := errors.New("not the open file")
	if s := l.openStream(key); s != nil {
		_, err := s.run(ctx, &op{do: func(s *stream) error {
			err := errElsewhere
			if s.h != nil && s.name == file {
				err = s.drop(drop)
			}
			if err == nil || errors.Is(err, errElsewhere) {
				s.recent.forget(drop, file)
			}
			return err
		}})
		if !errors.Is(err, errElsewhere) && !errors.Is(err, errStreamClosed) {
			return err
		}
	}
	h, err := holdSoon(ctx, l.root, path.Join(key.run, file), 5*time.Second)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	h, _, err = l.rewrite(h, path.Join(key.run, file), drop)
	return errors.Join(err, h.close())
}

// drop takes lines out of the open file. Only the leader calls it.
func (s *stream) drop(keys map[crawl.RecordKey]bool) error {
	if len(keys) == 1 {
		if done, err := s.cutLast(keys); done || err != nil {
			return err
		}
	}
	h, size, err := s.l.rewrite(s.h, path.Join(s.key.run, s.name), keys)
	s.h, s.size = h, size
	return err
}

// cutLast handles the common case, in which the line is the file's last: the
// loser of a race drops it right after it was written. False: it is not.
func (s *stream) cutLast(keys map[crawl.RecordKey]bool) (bool, error) {
	const most = 64 << 10
	from := max(0, s.size-most)
	buf := make([]byte, s.size-from)
	if _, err := s.h.f.ReadAt(buf, from); err != nil {
		return false, err
	}
	if len(buf) == 0 {
		return true, nil
	}
	start := bytes.LastIndexByte(buf[:len(buf)-1], '\n') + 1
	if start == 0 && from > 0 {
		return false, nil
	}
	key, ok := keyOf(buf[start:])
	if !ok || !keys[key] {
		return false, nil
	}
	size := from + int64(start)
	if err := s.h.f.Truncate(size); err != nil {
		return false, err
	}
	s.size = size
	s.l.stats.dropped.Add(1)
	s.l.stats.syncs.Add(1)
	return true, s.l.sync(s.h.f)
}
