package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"holdfast/internal/crawl"
)

// dial makes the way to the target as far as this package makes it: TCP, TLS to
// an https proxy, SOCKS. CONNECT and TLS to the target are the transport's, over
// the connection returned here.
//
// It keeps to the exchange's own context: the transport detaches its dials from
// the request, so that they would outlive a cancel.
func (x *exchange) dial(_ context.Context, _, addr string) (net.Conn, error) {
	x.link.to(linkDialling)
	deadline := time.Now().Add(x.lim.Connect)
	ctx, cancel := context.WithDeadline(x.ctx, deadline)
	defer cancel()

	p := x.req.Proxy
	if p == nil {
		conn, err := x.dialTarget(ctx, addr)
		if err != nil {
			return nil, err
		}
		x.tunnelStands()
		return conn, nil
	}
	raw, err := x.dialTCP(ctx, p.Addr(), nil)
	if err != nil {
		return nil, &fault{crawl.ProxyFault, dialReason(err)}
	}
	if err := raw.SetDeadline(deadline); err != nil {
		return nil, &fault{crawl.ProxyFault, dialReason(err)}
	}
	conn := raw
	switch p.Scheme {
	case "https":
		secure := tls.Client(raw, x.c.tlsConfig(p.Host))
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, &fault{crawl.ProxyFault, dialReason(err)}
		}
		conn = secure
	case "socks5", "socks5h":
		if err := x.socks(ctx, raw, addr); err != nil {
			return nil, err
		}
	}
	if x.connects() {
		// The deadline stays on until OnProxyConnectResponse lifts it.
		x.link.to(linkTunnelling)
		return conn, nil
	}
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return nil, &fault{crawl.ProxyFault, dialReason(err)}
	}
	x.tunnelStands()
	return conn, nil
}

// dialTCP connects and puts the connection under the exchange: it is closed when
// the exchange is over or canceled.
func (x *exchange) dialTCP(ctx context.Context, addr string, d *net.Dialer) (net.Conn, error) {
	if d == nil {
		d = &net.Dialer{Resolver: x.c.opts.Resolver}
	}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if !x.conns.add(conn) {
		_ = conn.Close()
		return nil, errClosed
	}
	return conn, nil
}

func (x *exchange) dialTarget(ctx context.Context, addr string) (net.Conn, error) {
	d := &net.Dialer{
		Resolver:       x.c.opts.Resolver,
		ControlContext: x.c.guard.control(x.req.AllowPrivate),
	}
	conn, err := x.dialTCP(ctx, addr, d)
	if err != nil {
		return nil, targetFault(err)
	}
	return conn, nil
}

// targetFault classes a failed direct dial or look-up: no proxy is to blame.
func targetFault(err error) error {
	var f *fault
	var dns *net.DNSError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &dns) && dns.IsNotFound:
		return permanent(crawl.ReasonNoSuchHost)
	}
	return ambiguous(dialReason(err))
}

// socks opens the SOCKS5 tunnel to addr on conn. Under socks5 the name is resolved
// here and checked, and the proxy is given the address; under socks5h the proxy
// is given the name.
func (x *exchange) socks(ctx context.Context, conn net.Conn, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return permanent(crawl.ReasonInvalidURL)
	}
	if x.req.Proxy.Scheme == "socks5" {
		if host, err = x.resolve(ctx, host); err != nil {
			return err
		}
	}
	return socksConnect(conn, x.req.Proxy, host, port)
}

// resolve returns the first address of host that the guard admits.
func (x *exchange) resolve(ctx context.Context, host string) (string, error) {
	if _, err := netip.ParseAddr(host); err == nil {
		return host, nil
	}
	resolver := x.c.opts.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", targetFault(err)
	}
	for _, a := range addrs {
		if x.c.guard.addrAllowed(a, x.req.AllowPrivate) {
			return a.Unmap().String(), nil
		}
	}
	return "", permanent(crawl.ReasonAddressNotAllowed)
}

// connSet holds an exchange's raw connections, so that all of them can be closed
// at once, without waiting for a TLS goodbye.
type connSet struct {
	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

func (s *connSet) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns = append(s.conns, c)
	return true
}

func (s *connSet) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

// deadline sets or, with the zero time, lifts the deadline of all connections.
func (s *connSet) deadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.SetDeadline(t)
	}
}
