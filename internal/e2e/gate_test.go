package e2e_test

import (
	"bytes"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
)

// gate stands between a worker and its Redis. Once a command holds the word that
// it watches for, it lets that command through and then holds back what follows,
// commands or answers, until it is opened.
type gate struct {
	ln       net.Listener
	upstream string
	word     []byte
	answers  bool
	met      chan struct{} // closed when the word was seen
	open     chan struct{} // closed by letThrough
	once     sync.Once
	opened   sync.Once
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// newGate returns a gate before the Redis at the URL, which holds back commands,
// or their answers.
func newGate(t *testing.T, redisURL, word string, answers bool) *gate {
	t.Helper()
	u, err := url.Parse(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{
		ln: ln, upstream: u.Host, word: []byte(word), answers: answers,
		met: make(chan struct{}), open: make(chan struct{}),
	}
	g.wg.Go(g.accept)
	t.Cleanup(g.close)
	return g
}

func (g *gate) URL() string { return "redis://" + g.ln.Addr().String() }

// letThrough opens the gate for good.
func (g *gate) letThrough() { g.opened.Do(func() { close(g.open) }) }

func (g *gate) close() {
	_ = g.ln.Close()
	g.letThrough()
	g.mu.Lock()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.mu.Unlock()
	g.wg.Wait()
}

func (g *gate) accept() {
	for {
		c, err := g.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		up, err := net.Dial("tcp", g.upstream)
		if err != nil {
			_ = c.Close()
			continue
		}
		g.mu.Lock()
		g.conns = append(g.conns, c, up)
		g.mu.Unlock()
		g.wg.Go(func() { g.carry(up, c, true) })
		g.wg.Go(func() { g.carry(c, up, false) })
	}
}

// carry copies one direction. The word may be cut in two by the reads.
func (g *gate) carry(to, from net.Conn, commands bool) {
	defer to.Close() //nolint:errcheck // the other end notices
	buf := make([]byte, 64<<10)
	var last []byte
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if commands != g.answers && g.isShut() {
				<-g.open
			}
			if commands {
				seen := append(last, buf[:n]...)
				if bytes.Contains(seen, g.word) {
					g.once.Do(func() { close(g.met) })
				}
				last = append([]byte(nil), seen[max(0, len(seen)-len(g.word)):]...)
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (g *gate) isShut() bool {
	select {
	case <-g.met:
		return true
	default:
		return false
	}
}
