package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// compactPause is the wait after a compaction that failed.
const compactPause = 10 * time.Second

// Server is a running Redis over a directory.
type Server struct {
	dir     string
	opts    Options
	runID   string
	lock    *flock.Flock
	l       net.Listener
	onError func(error)

	mu     sync.Mutex // held for each step
	engine *engine    // nil after a panic, until rebuilt
	clock  clock
	log    *log
	// snapshotSize is the last snapshot's; what was journaled since is the most
	// that the next can have grown by, or nearly.
	snapshotSize int64

	connMu  sync.Mutex
	conns   map[net.Conn]struct{}
	closing bool

	compactNow chan struct{}
	stop       context.CancelFunc
	wg         sync.WaitGroup
	closed     sync.Once
	closeErr   error
	restored   Restored
}

// Restored tells what Open found.
type Restored struct {
	Records int           // replayed after the snapshot
	Cut     int64         // bytes of a torn tail, dropped
	Keys    int           // that are there
	Took    time.Duration // reading it all
}

// Open starts a Redis on loopback with the state of dir, which is made (0700) if
// it is not there.
//
// Errors: ErrLocked, ErrCorrupt, and the system's (a port in use, a disk full).
func Open(dir string, opts Options) (_ *Server, err error) {
	if err := opts.defaults(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make journal directory: %w", err)
	}
	s := &Server{
		dir: dir, opts: opts, onError: opts.OnError, runID: newID(),
		lock:       flock.New(filepath.Join(dir, "lock")),
		conns:      map[net.Conn]struct{}{},
		clock:      clock{now: opts.Now},
		compactNow: make(chan struct{}, 1),
	}
	held, err := s.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock journal: %w", err)
	}
	if !held {
		return nil, fmt.Errorf("%w: %s", ErrLocked, dir)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.lock.Unlock())
		}
	}()
	if err := s.load(); err != nil {
		return nil, err
	}
	if s.l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", opts.Port)); err != nil {
		s.engine.close()
		return nil, fmt.Errorf("listen for redis: %w", errors.Join(err, s.log.file.Close()))
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Go(s.accept)
	s.wg.Go(func() { s.tick(ctx) })
	s.wg.Go(func() { s.compactor(ctx) })
	return s, nil
}

// load restores the state and opens the log behind it.
func (s *Server) load() error {
	begun := time.Now()
	st, err := restore(s.dir)
	if err != nil {
		return fmt.Errorf("restore %s: %w", s.dir, err)
	}
	s.log = &log{
		dir: s.dir, limit: s.opts.CompactEvery, state: &s.mu,
		seq: st.seq, records: st.records, index: st.index,
	}
	s.log.written.Store(st.seq)
	s.log.file, s.log.off, err = reopenSegment(s.dir, st.index, st.off)
	if err == nil {
		err = dropSegments(s.dir, st.first)
	}
	if err != nil {
		st.engine.close()
		return err
	}
	s.engine = st.engine
	s.clock.from(st.at)
	s.advance()
	s.restored = Restored{
		Records: st.records, Cut: max(0, st.size-st.off),
		Keys: len(s.engine.redis.Keys()), Took: time.Since(begun),
	}
	return nil
}

// Restored tells what Open found.
func (s *Server) Restored() Restored { return s.restored }

// Addr returns the address listened on, "127.0.0.1:6379".
func (s *Server) Addr() string { return s.l.Addr().String() }

// URL returns the address in the form of redis clients, "redis://127.0.0.1:6379/0".
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Close drops the clients, writes a snapshot and lets go of the directory. What
// was acknowledged is kept even if it returns an error. Idempotent.
func (s *Server) Close() error {
	s.closed.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Server) close() error {
	s.stop()
	errs := []error{s.l.Close()}
	s.connMu.Lock()
	s.closing = true
	for c := range s.conns {
		c.Close()
	}
	s.connMu.Unlock()
	s.wg.Wait()
	if s.log.records > 0 {
		errs = append(errs, s.compactLog())
	}
	errs = append(errs, s.log.sync(), s.log.file.Close())
	if s.engine != nil {
		s.engine.close()
	}
	return errors.Join(append(errs, s.lock.Unlock())...)
}

func (s *Server) accept() {
	for {
		c, err := s.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors: the clients that are here will free some.
			s.onError(fmt.Errorf("journal: accept: %w", err))
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if !s.join(c) {
			continue
		}
		s.wg.Go(func() {
			defer s.leave(c)
			s.serve(newClient(c))
		})
	}
}

func (s *Server) join(c net.Conn) bool {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	if s.closing || len(s.conns) >= s.opts.MaxConns {
		if !s.closing {
			c.Write([]byte("-ERR max number of clients reached\r\n"))
		}
		c.Close()
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) leave(c net.Conn) {
	c.Close()
	s.connMu.Lock()
	delete(s.conns, c)
	s.connMu.Unlock()
}

func (s *Server) clients() int {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	return len(s.conns)
}

// tick syncs the journal.
func (s *Server) tick(ctx context.Context) {
	t := time.NewTicker(s.opts.Sync)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := s.log.sync(); err != nil {
				s.onError(fmt.Errorf("journal: %w", err))
			}
		}
	}
}

func (s *Server) compactor(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.compactNow:
			if err := s.compactLog(); err != nil {
				s.onError(fmt.Errorf("journal: %w", err))
				// It stays due; a full disk is not worth a copy of the state each command.
				select {
				case <-ctx.Done():
				case <-time.After(compactPause):
				}
			}
		}
	}
}

func newID() string {
	b := make([]byte, 20)
	rand.Read(b)
	return hex.EncodeToString(b)
}
