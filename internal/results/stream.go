package results

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"holdfast/internal/crawl"
)

// maxBatch bounds the bytes that one write and fsync carry.
const maxBatch = 8 << 20

type streamKey struct {
	run    string // the run's folder, relative to the sink
	stream Stream
}

// stream is this process's end of one stream of one run. Whoever comes first
// leads: it writes everything that is queued in one go, fsyncs once, and hands
// the lead to the first of those that queued up meanwhile. So commits are
// grouped exactly as much as the disk is slow, without a timer and without a
// goroutine of its own.
type stream struct {
	l   *Local
	key streamKey

	mu      sync.Mutex
	idle    sync.Cond
	queue   []*op
	leading bool
	closed  bool
	used    int64 // Local.clock at the last use; under Local.mu

	// Only the leader touches what follows.
	h      *held // nil: no file is open
	name   string
	size   int64 // bytes that are durable
	recent recent
}

// op is one append, or with do set something else that needs the file to itself.
type op struct {
	key  crawl.RecordKey
	end  ending
	line []byte
	do   func(s *stream) error

	lead bool // under stream.mu: the lead was handed to this op
	done chan opResult
}

type opResult struct {
	lead bool // not a result: this op's goroutine leads now
	file string
	err  error
}

var errStreamClosed = errors.New("results: stream is closed")

func newStream(l *Local, key streamKey) *stream {
	s := &stream{l: l, key: key}
	s.idle.L = &s.mu
	return s
}

// run queues o and returns its result. A context that ends takes the op out of
// the queue; once it is being written it is waited for.
func (s *stream) run(ctx context.Context, o *op) (string, error) {
	o.done = make(chan opResult, 1)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return "", errStreamClosed
	}
	s.queue = append(s.queue, o)
	if !s.leading {
		s.leading = true
		s.mu.Unlock()
		return s.lead(o)
	}
	s.mu.Unlock()

	var r opResult
	select {
	case r = <-o.done:
	case <-ctx.Done():
		if s.withdraw(o) {
			return "", ctx.Err()
		}
		r = <-o.done
	}
	if r.lead {
		return s.lead(o)
	}
	return r.file, r.err
}

// withdraw takes o out of the queue; false if it is being written or leads.
func (s *stream) withdraw(o *op) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.lead {
		return false
	}
	for i, q := range s.queue {
		if q == o {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			return true
		}
	}
	return false
}

// lead works off one batch, which o is part of, and hands the lead on.
func (s *stream) lead(o *op) (string, error) {
	s.mu.Lock()
	n, bytes := 0, 0
	for n < len(s.queue) && (n == 0 || bytes+len(s.queue[n].line) <= maxBatch) {
		bytes += len(s.queue[n].line)
		n++
	}
	batch := s.queue[:n:n]
	s.queue = append([]*op(nil), s.queue[n:]...)
	s.mu.Unlock()

	s.work(batch)

	s.mu.Lock()
	if len(s.queue) > 0 {
		next := s.queue[0]
		next.lead = true
		next.done <- opResult{lead: true}
	} else {
		s.leading = false
		s.idle.Broadcast()
	}
	s.mu.Unlock()
	r := <-o.done
	return r.file, r.err
}

// work does a batch in order: appends in groups, the rest one by one.
func (s *stream) work(batch []*op) {
	for i := 0; i < len(batch); {
		if o := batch[i]; o.do != nil {
			o.done <- opResult{err: o.do(s)}
			i++
			continue
		}
		j := i
		for j < len(batch) && batch[j].do == nil {
			j++
		}
		s.append(batch[i:j])
		i = j
	}
}

// append writes one group of lines with one fsync. A record whose line is there
// already, with the same end, is not written again; one with another end goes
// into the next file, so that the frontier's confirmation, which names a file,
// tells the two apart.
func (s *stream) append(ops []*op) {
	for len(ops) > 0 {
		n, err := s.appendSome(ops)
		if err != nil {
			for _, o := range ops {
				o.done <- opResult{err: err}
			}
			return
		}
		ops = ops[n:]
	}
}

// appendSome writes the longest run of ops that may share a file and answers
// them. On an error it has answered none.
func (s *stream) appendSome(ops []*op) (int, error) {
	if err := s.open(); err != nil {
		return 0, fmt.Errorf("open record file: %w", err)
	}
	var (
		buf   []byte
		n     int
		files = make([]string, 0, len(ops))
		fresh = make(map[crawl.RecordKey]int, len(ops)) // key -> index into ops
	)
	for ; n < len(ops); n++ {
		o := ops[n]
		if i, ok := fresh[o.key]; ok {
			if ops[i].end != o.end {
				break
			}
			files = append(files, s.name)
			continue
		}
		if old, ok := s.recent.get(o.key); ok {
			if old.end == o.end {
				files = append(files, old.file)
				continue
			}
			if old.file == s.name {
				break
			}
		}
		fresh[o.key] = n
		buf = append(buf, o.line...)
		files = append(files, s.name)
	}
	if len(buf) > 0 {
		if err := s.write(buf); err != nil {
			return 0, err
		}
	}
	for key, i := range fresh {
		s.recent.put(key, place{file: s.name, end: ops[i].end})
	}
	s.l.stats.records.Add(int64(len(fresh)))
	s.l.stats.repeated.Add(int64(n - len(fresh)))
	if s.size >= s.l.opts.MaxFile || n < len(ops) {
		s.closeFile()
	}
	for i, o := range ops[:n] {
		o.done <- opResult{file: files[i]}
	}
	return n, nil
}

// write appends buf and makes it durable, or leaves the file as it was.
func (s *stream) write(buf []byte) error {
	_, err := s.h.f.WriteAt(buf, s.size)
	if err == nil {
		s.l.stats.syncs.Add(1)
		if err = s.l.sync(s.h.f); err == nil {
			s.size += int64(len(buf))
			return nil
		}
		err = fmt.Errorf("sync records: %w", err)
	} else {
		err = fmt.Errorf("write records: %w", err)
	}
	// What a failed write or fsync left is cut off. After a failed fsync nobody
	// knows which pages are on disk, so the file is not written to again.
	_ = s.h.f.Truncate(s.size)
	_ = s.h.f.Sync()
	s.closeFile()
	return err
}

// open makes sure that a file is open for appending.
func (s *stream) open() error {
	if s.h != nil {
		return nil
	}
	if err := mkdirs(s.l.root, s.key.run); err != nil {
		return err
	}
	prefix := string(s.key.stream) + "-" + s.l.opts.Worker
	h, name, err := createNumbered(s.l.root, s.key.run, prefix, lineExt)
	if err != nil {
		return err
	}
	s.h, s.name, s.size = h, path.Base(name), 0
	return nil
}

func (s *stream) closeFile() {
	if s.h != nil {
		_ = s.h.close()
		s.h, s.name = nil, ""
	}
}

// close waits for what is queued and closes the file.
func (s *stream) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for s.leading {
		s.idle.Wait()
	}
	var err error
	if s.h != nil {
		err = s.h.close()
		s.h = nil
	}
	return err
}

// closeIfIdle closes the stream unless something is queued or being written.
func (s *stream) closeIfIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leading || len(s.queue) > 0 {
		return false
	}
	s.closed = true
	s.closeFile()
	return true
}
