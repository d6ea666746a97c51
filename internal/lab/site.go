package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// ProxyHeader is set by a lab proxy on the plain requests that it passes on, so
// that the site's log shows who carried them.
const ProxyHeader = "X-Lab-Proxy"

// SiteOptions configure a Site. The zero value is a site without robots.txt.
type SiteOptions struct {
	// Addr is where to listen, loopback only. Default "127.0.0.1:0"; an address
	// without a port takes a free one.
	Addr string
	// TLS serves https, with a certificate that CertPool trusts. HTTP/1.1 only.
	TLS bool
	// Robots is the text of robots.txt. Default: none, 404.
	Robots string
	// RobotsStatus answers robots.txt with this status instead.
	RobotsStatus int
	// Files is a folder that is served under /files/.
	Files string
	// Faults are mixed into /files/.
	Faults Faults
	// Throttle closes the whole site for a while.
	Throttle Throttle
	// MaxLog is the number of requests remembered, the newest. Default 100,000.
	MaxLog int
	// Now is the clock of the log and of the throttle. Default time.Now.
	Now func() time.Time
}

// Throttle makes a site answer 429 with a Retry-After to every request from
// number From on (1 is the first), for For. The zero value never does.
type Throttle struct {
	From int
	For  time.Duration
}

// Visit is one request, as the site saw it.
type Visit struct {
	// At is when the request's head was read.
	At     time.Time
	Method string
	// Path is the request's path and query.
	Path string
	Host string
	// Proxy is what the proxy header says; Peer is the connection's other end.
	Proxy     string
	Peer      string
	UserAgent string
	// Status is what was answered; 0: the connection was broken before.
	Status int
	// Early says that a Retry-After given before had not passed.
	Early bool
}

// Site is a web server on loopback.
type Site struct {
	opts  SiteOptions
	ln    net.Listener
	srv   *http.Server
	pool  *x509.CertPool
	files *os.Root
	ended chan struct{} // closed by Close: handlers that wait go home
	wg    sync.WaitGroup
	once  sync.Once

	mu     sync.Mutex
	visits []Visit // a ring once MaxLog is reached
	next   int
	gone   bool // Close was called: no handler begins any more
	total  int
	early  int
	asked  map[string]int       // requests so far, of paths that change with them
	closed map[string]time.Time // paths and "" (the whole site): not before
}

// NewSite starts a site. Stop it with Close.
func NewSite(opts SiteOptions) (*Site, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.MaxLog <= 0 {
		opts.MaxLog = 100_000
	}
	s := &Site{
		opts: opts, ended: make(chan struct{}),
		asked: make(map[string]int), closed: make(map[string]time.Time),
	}
	if opts.Files != "" {
		root, err := os.OpenRoot(opts.Files)
		if err != nil {
			return nil, fmt.Errorf("open site's files: %w", err)
		}
		s.files = root
	}
	if err := s.listen(); err != nil {
		if s.files != nil {
			_ = s.files.Close()
		}
		return nil, err
	}
	s.wg.Go(func() { _ = s.srv.Serve(s.ln) })
	return s, nil
}

func (s *Site) listen() error {
	ln, err := listen(s.opts.Addr)
	if err != nil {
		return err
	}
	s.srv = &http.Server{
		Handler: s.logged(s.routes()), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(discard{}, "", 0), // clients that hang up are the point
	}
	if s.opts.TLS {
		cert, pool, err := selfSigned()
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		s.pool = pool
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}})
	}
	s.ln = ln
	return nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Addr returns host:port.
func (s *Site) Addr() string { return s.ln.Addr().String() }

// URL returns the absolute URL of a path on this site.
func (s *Site) URL(path string) string {
	if s.opts.TLS {
		return "https://" + s.Addr() + path
	}
	return "http://" + s.Addr() + path
}

// CertPool trusts the site's certificate; nil without TLS.
func (s *Site) CertPool() *x509.CertPool { return s.pool }

// Close breaks every connection and waits until no handler runs.
func (s *Site) Close() error {
	var err error
	s.once.Do(func() {
		s.mu.Lock()
		s.gone = true
		s.mu.Unlock()
		close(s.ended)
		err = s.srv.Close()
		s.wg.Wait()
		if s.files != nil {
			err = errors.Join(err, s.files.Close())
		}
	})
	return err
}

// Visits returns the requests remembered, oldest first.
func (s *Site) Visits() []Visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(append([]Visit(nil), s.visits[s.next:]...), s.visits[:s.next]...)
}

// Count returns how many of the remembered requests had this path and query.
func (s *Site) Count(path string) int {
	n := 0
	for _, v := range s.Visits() {
		if v.Path == path {
			n++
		}
	}
	return n
}

// Total returns the number of requests since the start.
func (s *Site) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Early returns the number of requests that came before a Retry-After had
// passed, of their path or of the site.
func (s *Site) Early() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.early
}

// logged notes each request when it comes and its status when it has been answered.
func (s *Site) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			return
		}
		defer s.wg.Done()
		v := Visit{
			At: s.opts.Now(), Method: r.Method, Path: r.URL.RequestURI(), Host: r.Host,
			Proxy: r.Header.Get(ProxyHeader), Peer: r.RemoteAddr, UserAgent: r.UserAgent(),
		}
		after, number := s.arrive(&v, r.URL.Path)
		a := &answer{ResponseWriter: w}
		a.note = func(status int) { v.Status = status; s.record(number, v) }
		s.record(number, v)
		if after > 0 {
			tooMany(a, after)
			return
		}
		next.ServeHTTP(a, r)
	})
}

// begin counts a handler, unless the site closes.
func (s *Site) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	s.wg.Add(1)
	return true
}

// arrive numbers a request and tells for how long the site is closed to it.
func (s *Site) arrive(v *Visit, path string) (time.Duration, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	until := s.closed[""]
	v.Early = v.At.Before(until) || v.At.Before(s.closed[path])
	if v.Early {
		s.early++
	}
	if t := s.opts.Throttle; until.IsZero() && t.From > 0 && s.total >= t.From {
		until = v.At.Add(t.For)
		s.closed[""] = until
	}
	return until.Sub(v.At), s.total
}

// record writes a visit to its place in the ring, number counting from 1.
func (s *Site) record(number int, v Visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number <= s.total-s.opts.MaxLog {
		return // overwritten meanwhile
	}
	i := (number - 1) % s.opts.MaxLog
	for len(s.visits) <= i {
		s.visits = append(s.visits, Visit{})
	}
	s.visits[i] = v
	if s.total > s.opts.MaxLog {
		s.next = s.total % s.opts.MaxLog
	}
}

// ask counts a request of a path and returns how many there were before.
func (s *Site) ask(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.asked[path]
	s.asked[path]++
	return n
}

// closeFor notes that path must not be asked for d.
func (s *Site) closeFor(path string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[path] = s.opts.Now().Add(d)
}

// wait returns after d, or false as soon as the client is gone or the site closes.
func (s *Site) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.ended:
	}
	return false
}

// answer notes the status on its way out.
type answer struct {
	http.ResponseWriter
	note func(int)
	done bool
}

func (a *answer) WriteHeader(status int) {
	if !a.done {
		a.done = true
		a.note(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if !a.done {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
