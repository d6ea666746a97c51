package fetch_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/crawl"
)

// forward is a forward proxy on loopback: absolute-form requests and CONNECT.
type forward struct {
	*httptest.Server
	// user and password are required if set.
	user, password string
	// to replaces where every connection goes, for names that do not exist.
	to string
	// connect, if set, answers CONNECT in its place.
	connect func(conn net.Conn)
	// status, if set, answers every absolute-form request in its place.
	status int

	mu       sync.Mutex
	connects []string
	plain    []string
	auths    []string
}

func (f *forward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.auths = append(f.auths, r.Header.Get("Proxy-Authorization"))
	if r.Method == http.MethodConnect {
		f.connects = append(f.connects, r.Host)
	} else {
		f.plain = append(f.plain, r.URL.String())
	}
	f.mu.Unlock()
	if f.user != "" && r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(f.user+":"+f.password)) {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method == http.MethodConnect {
		f.tunnel(w, r)
		return
	}
	if f.status != 0 {
		w.WriteHeader(f.status)
		return
	}
	f.pass(w, r)
}

func (f *forward) pass(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.Header.Del("Proxy-Authorization")
	rt := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	if f.to != "" {
		out.Host, out.URL.Host = r.Host, f.to
	}
	res, err := rt.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

func (f *forward) tunnel(w http.ResponseWriter, r *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if f.connect != nil {
		f.connect(conn)
		return
	}
	addr := r.Host
	if f.to != "" {
		addr = f.to
	}
	up, err := net.Dial("tcp", addr)
	if err != nil {
		_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer up.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	splice(conn, up)
}

func (f *forward) seen() (connects, plain, auths []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.connects...), append([]string(nil), f.plain...), append([]string(nil), f.auths...)
}

func splice(a, b net.Conn) {
	done := make(chan struct{})
	go func() { _, _ = io.Copy(a, b); a.Close(); b.Close(); close(done) }()
	_, _ = io.Copy(b, a)
	a.Close()
	b.Close()
	<-done
}

// startForward starts f; scheme is http or https.
func startForward(t testing.TB, f *forward, scheme string) *crawl.Proxy {
	t.Helper()
	f.Server = httptest.NewUnstartedServer(f)
	if scheme == "https" {
		f.StartTLS()
	} else {
		f.Start()
	}
	t.Cleanup(f.Close)
	p := proxyAt(t, scheme, f.Listener.Addr().String())
	p.Username, p.Password = f.user, f.password
	return p
}

func proxyAt(t testing.TB, scheme, addr string) *crawl.Proxy {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return &crawl.Proxy{ID: "p1", Scheme: scheme, Host: host, Port: n, Region: "de"}
}

// socks is a SOCKS5 server on loopback (RFC 1928, CONNECT only).
type socks struct {
	user, password string
	// reply, if not 0, refuses with that code.
	reply byte
	to    string

	mu    sync.Mutex
	asked []string
}

func (s *socks) serve(conn net.Conn) {
	var head [2]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(conn, methods); err != nil {
		return
	}
	if s.user != "" {
		if !strings.Contains(string(methods), "\x02") {
			_, _ = conn.Write([]byte{5, 0xff})
			return
		}
		_, _ = conn.Write([]byte{5, 2})
		if !s.login(conn) {
			_, _ = conn.Write([]byte{1, 1})
			return
		}
		_, _ = conn.Write([]byte{1, 0})
	} else {
		_, _ = conn.Write([]byte{5, 0})
	}
	addr, ok := s.request(conn)
	if !ok {
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, addr)
	s.mu.Unlock()
	if s.reply != 0 {
		_, _ = conn.Write([]byte{5, s.reply, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	if s.to != "" {
		addr = s.to
	}
	up, err := net.Dial("tcp", addr)
	if err != nil {
		_, _ = conn.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	_, _ = conn.Write([]byte{5, 0, 0, 3, 1, 'x', 0, 80})
	splice(conn, up)
}

func (s *socks) login(conn net.Conn) bool {
	read := func() string {
		var n [1]byte
		if _, err := io.ReadFull(conn, n[:]); err != nil {
			return ""
		}
		b := make([]byte, n[0])
		_, _ = io.ReadFull(conn, b)
		return string(b)
	}
	var version [1]byte
	_, _ = io.ReadFull(conn, version[:])
	user, password := read(), read()
	return user == s.user && password == s.password
}

func (s *socks) request(conn net.Conn) (string, bool) {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return "", false
	}
	var host string
	switch head[3] {
	case 1, 4:
		b := make([]byte, map[byte]int{1: 4, 4: 16}[head[3]])
		_, _ = io.ReadFull(conn, b)
		host = net.IP(b).String()
	case 3:
		var n [1]byte
		_, _ = io.ReadFull(conn, n[:])
		b := make([]byte, n[0])
		_, _ = io.ReadFull(conn, b)
		host = string(b)
	}
	var port [2]byte
	if _, err := io.ReadFull(conn, port[:]); err != nil {
		return "", false
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port[:])))), true
}

func (s *socks) hosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func startSocks(t testing.TB, s *socks, scheme string) *crawl.Proxy {
	t.Helper()
	p := proxyAt(t, scheme, listen(t, s.serve))
	p.Username, p.Password = s.user, s.password
	return p
}

// listen serves each connection with handle and closes it afterwards. Whatever is
// open at the end of the test is cut, and its handlers are waited for.
func listen(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		open []net.Conn
	)
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// readRequest reads up to the end of a request's head.
func readRequest(c net.Conn) string {
	var b strings.Builder
	buf := make([]byte, 1)
	for !strings.HasSuffix(b.String(), "\r\n\r\n") {
		if _, err := c.Read(buf); err != nil {
			return b.String()
		}
		b.WriteByte(buf[0])
	}
	return b.String()
}

// roots trusts the certificate of httptest's TLS servers (127.0.0.1, example.com).
func roots(t testing.TB) *x509.CertPool {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

func hostOf(t testing.TB, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
