package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Behaviour is how a proxy treats who comes to it.
type Behaviour string

// The behaviours.
const (
	// Good carries everything.
	Good Behaviour = "good"
	// Refuse has an address and nobody who listens there: connection refused.
	Refuse Behaviour = "refuse"
	// Slow carries everything after Delay.
	Slow Behaviour = "slow"
	// Stall accepts connections and never answers.
	Stall Behaviour = "stall"
	// DieMidBody breaks both connections after DieAfter bytes of an answer.
	DieMidBody Behaviour = "die mid-body"
	// Unavailable answers 503 itself (SOCKS5: general failure).
	Unavailable Behaviour = "unavailable"
)

// ProxyOptions configure a Proxy. The zero value is an open, good http proxy.
type ProxyOptions struct {
	// Name is what ProxyHeader says. Default: the address.
	Name string
	// Addr is where to listen, as in SiteOptions.
	Addr string
	// SOCKS makes it a SOCKS5 proxy (RFC 1928, RFC 1929), which carries TCP only.
	SOCKS bool
	// TLS makes it an https proxy, with a certificate that CertPool trusts.
	TLS bool
	// Username and Password are asked for if either is set.
	Username, Password string
	// ListPassword is the password that ListLine gives away, if it is not the
	// right one: an out-of-date list.
	ListPassword string
	// Behaviour defaults to Good.
	Behaviour Behaviour
	// Delay belongs to Slow. Default 300 ms.
	Delay time.Duration
	// DieAfter belongs to DieMidBody: bytes of the answer. Default 1000.
	DieAfter int64
}

// ProxyStats count what came to a proxy.
type ProxyStats struct {
	// Requests counts plain requests, Connects tunnels asked for (CONNECT, or
	// SOCKS5), both after the credentials passed; Denied counts those that did not.
	Requests, Connects, Denied int
	// Active and MaxActive count the requests and tunnels at a time.
	Active, MaxActive int
}

// Proxy is a forward proxy on loopback that carries to loopback only.
type Proxy struct {
	opts ProxyOptions
	addr net.Addr
	ln   net.Listener // nil for Refuse
	hold []net.Conn   // Refuse: what keeps the port from others
	pool *x509.CertPool
	tr   *http.Transport

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	gone  bool
	stats ProxyStats
}

// NewProxy starts a proxy. Stop it with Close.
func NewProxy(opts ProxyOptions) (*Proxy, error) {
	if opts.Behaviour == "" {
		opts.Behaviour = Good
	}
	if opts.Delay <= 0 {
		opts.Delay = 300 * time.Millisecond
	}
	if opts.DieAfter <= 0 {
		opts.DieAfter = 1000
	}
	p := &Proxy{opts: opts, conns: make(map[net.Conn]struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.tr = &http.Transport{
		Proxy: nil, DialContext: p.dial, DisableKeepAlives: true, DisableCompression: true,
	}
	if err := p.open(); err != nil {
		p.cancel()
		return nil, err
	}
	if p.opts.Name == "" {
		p.opts.Name = p.Addr()
	}
	if p.ln != nil {
		p.wg.Go(p.accept)
	}
	return p, nil
}

func (p *Proxy) open() error {
	ln, err := listen(p.opts.Addr)
	if err != nil {
		return err
	}
	if p.opts.Behaviour == Refuse {
		return p.reserve(ln)
	}
	p.addr = ln.Addr()
	if p.opts.TLS {
		cert, pool, err := selfSigned()
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		p.pool = pool
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}})
	}
	p.ln = ln
	return nil
}

// reserve takes a port on which nobody listens and nobody can: that of the
// client's end of a connection which stays open.
func (p *Proxy) reserve(ln net.Listener) error {
	local := &net.TCPAddr{IP: ln.Addr().(*net.TCPAddr).IP}
	d := net.Dialer{LocalAddr: local}
	ours, err := d.Dial("tcp", ln.Addr().String())
	if err != nil {
		return errors.Join(fmt.Errorf("reserve port: %w", err), ln.Close())
	}
	theirs, err := ln.Accept()
	if err != nil {
		return errors.Join(fmt.Errorf("reserve port: %w", err), ours.Close(), ln.Close())
	}
	p.hold, p.addr = []net.Conn{ours, theirs}, ours.LocalAddr()
	return ln.Close()
}

// Addr returns host:port.
func (p *Proxy) Addr() string { return p.addr.String() }

// Name returns what ProxyHeader says.
func (p *Proxy) Name() string { return p.opts.Name }

// CertPool trusts the proxy's certificate; nil without TLS.
func (p *Proxy) CertPool() *x509.CertPool { return p.pool }

// URL returns the proxy's URL with the credentials that a list gives away. A
// SOCKS5 proxy is socks5: names are resolved by who asks.
func (p *Proxy) URL() *url.URL {
	u := &url.URL{Scheme: "http", Host: p.Addr()}
	switch {
	case p.opts.SOCKS:
		u.Scheme = "socks5"
	case p.opts.TLS:
		u.Scheme = "https"
	}
	if p.guarded() {
		password := p.opts.Password
		if p.opts.ListPassword != "" {
			password = p.opts.ListPassword
		}
		u.User = url.UserPassword(p.opts.Username, password)
	}
	return u
}

// ListLine returns the proxy's line of a proxies file: scheme://user:pass@host:port.
func (p *Proxy) ListLine() string { return p.URL().String() }

func (p *Proxy) guarded() bool { return p.opts.Username != "" || p.opts.Password != "" }

// Stats returns the counts so far.
func (p *Proxy) Stats() ProxyStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Close breaks every connection and waits until nothing of the proxy runs.
func (p *Proxy) Close() error {
	var err error
	p.once.Do(func() {
		p.cancel()
		if p.ln != nil {
			err = p.ln.Close()
		}
		p.mu.Lock()
		p.gone = true
		for c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		for _, c := range p.hold {
			err = errors.Join(err, c.Close())
		}
		p.wg.Wait()
		p.tr.CloseIdleConnections()
	})
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			if p.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of file descriptors, or the client left already: go on, not hot.
			p.pause(5 * time.Millisecond)
			continue
		}
		if !p.keep(c) {
			_ = c.Close()
			return
		}
		p.wg.Go(func() {
			defer p.drop(c)
			if p.opts.SOCKS {
				p.serveSOCKS(c)
			} else {
				p.serveHTTP(c)
			}
		})
	}
}

// keep notes a connection that Close has to break; false once it was called.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.ctx.Done():
	}
}

// enter counts one use; the function returned ends it.
func (p *Proxy) enter(n *int) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
	p.stats.Active++
	p.stats.MaxActive = max(p.stats.MaxActive, p.stats.Active)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stats.Active--
	}
}

func (p *Proxy) denied() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Denied++
}

// ErrNotLoopback is why a lab proxy refuses to carry further than this machine.
var ErrNotLoopback = errors.New("lab: a lab proxy carries to loopback only")

func (p *Proxy) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("read target: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, ErrNotLoopback
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	return d.DialContext(ctx, network, addr)
}

// untilGone returns a context that ends when the proxy closes or the client
// hangs up. Nobody may read from r meanwhile; stop gives it back, which breaks
// the connection for reading.
func (p *Proxy) untilGone(c net.Conn, r *bufio.Reader) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := r.Peek(1)
		if err != nil {
			cancel()
		}
	}()
	return ctx, func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-done
		cancel()
	}
}
