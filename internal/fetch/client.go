package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/publicsuffix"

	"holdfast/internal/crawl"
)

// Options configure a Client. The zero value is right for the open Internet.
type Options struct {
	// RootCAs verifies targets and https proxies. Nil: the system's.
	RootCAs *x509.CertPool
	// Resolver resolves proxies' names and, directly and under socks5, targets'.
	// Nil: the system's.
	Resolver *net.Resolver
}

// Client makes exchanges. It holds no connection between them and is safe for
// concurrent use.
type Client struct {
	opts    Options
	guard   *guard
	buffers sync.Pool
	// rateWindow is the time over which MinRate holds.
	rateWindow time.Duration
}

// New returns a Client.
func New(opts Options) *Client {
	return &Client{
		opts:       opts,
		guard:      newGuard(),
		buffers:    sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }},
		rateWindow: 10 * time.Second,
	}
}

// WithDefaults returns l with every zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	if l.Total <= 0 {
		l.Total = crawl.DefaultTimeout
	}
	if l.Connect <= 0 {
		l.Connect = 10 * time.Second
	}
	if l.MaxWire <= 0 {
		l.MaxWire = crawl.DefaultMaxBody
	}
	if l.MaxBody <= 0 {
		l.MaxBody = crawl.DefaultMaxBody
	}
	if l.MaxRatio <= 0 {
		l.MaxRatio = 200
	}
	if l.MaxLayers <= 0 {
		l.MaxLayers = 2
	}
	if l.MaxHeader <= 0 {
		l.MaxHeader = 256 << 10
	}
	if l.MaxRedirects <= 0 {
		l.MaxRedirects = crawl.DefaultMaxRedirects
	}
	if l.MinRate <= 0 {
		l.MinRate = 128
	}
	return l
}

// exchange is the state of one Do.
type exchange struct {
	c   *Client
	req Request
	lim Limits

	caller context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc

	rt     *http.Transport
	jar    http.CookieJar
	conns  connSet
	link   link
	secure atomic.Bool // the current hop is https
	got    atomic.Bool // the current hop has its connection

	connectStart time.Time
	connectMS    atomic.Int64
	requests     int
	wire         int64
	last         *hop   // the hop under way
	contentType  string // the header as it came
	page         crawl.Page
}

// Do makes one exchange. It returns within Limits.Total, and at once when ctx
// ends; by then every connection is closed.
//
// A 2xx body is stored only if all of it came, within all limits. In Result the
// outcome's Proxy, Region, StartedMS and sizes are set, whatever the class.
func (c *Client) Do(ctx context.Context, r Request) Result {
	started := time.Now()
	x := &exchange{c: c, req: r, lim: r.Limits.WithDefaults(), caller: ctx}
	timed, stop := context.WithTimeoutCause(ctx, x.lim.Total, errTotal)
	defer stop()
	x.ctx, x.cancel = context.WithCancelCause(timed)
	defer context.AfterFunc(x.ctx, x.conns.close)()
	x.rt = x.transport()
	defer func() {
		x.cancel(errClosed)
		x.conns.close()
		x.rt.CloseIdleConnections()
	}()
	x.jar, _ = cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // never fails

	out, err := x.run()
	res := Result{Page: x.page}
	if err != nil {
		status := out.Status
		out, res.Err = x.outcomeOf(err)
		if out.Status == 0 && out.Exchanged() {
			out.Status = status
		}
	}
	out.StartedMS, out.TookMS = started.UnixMilli(), time.Since(started).Milliseconds()
	out.ConnectMS, out.Requests, out.WireBytes = x.connectMS.Load(), x.requests, x.wire
	if p := r.Proxy; p != nil {
		out.Proxy, out.Region = p.ID, p.Region
	}
	res.Outcome = out
	return res
}

// outcomeOf turns the end of a run into an outcome, or into an error that is the
// caller's own.
func (x *exchange) outcomeOf(err error) (crawl.Outcome, error) {
	var (
		f     *fault
		stop  *Stop
		hook  *hookError
		store *storeError
	)
	switch {
	case errors.As(err, &f):
		return crawl.Outcome{Class: f.class, Reason: f.reason}, nil
	case errors.As(err, &hook) && errors.As(hook.err, &stop):
		return x.stopped(stop.Outcome), nil
	case x.caller.Err() != nil:
		return crawl.Outcome{Class: crawl.Canceled}, nil
	case errors.As(err, &hook):
		return crawl.Outcome{}, hook.err
	case errors.As(err, &store):
		return crawl.Outcome{Reason: crawl.ReasonStore}, fmt.Errorf("store body: %w", store.err)
	}
	return crawl.Outcome{}, err
}

// stopped adds to a hook's deferral where the exchange had come to: the redirects
// that were answered are not asked for again.
func (x *exchange) stopped(o crawl.Outcome) crawl.Outcome {
	if h := x.last; o.Class == crawl.Deferred && h != nil && h.hops > x.req.Hops {
		o.NextURL, o.Hops = h.url.String(), h.hops
		if h.method != x.req.Method && (h.method != http.MethodGet || x.req.Method != "") {
			o.NextMethod = h.method
		}
	}
	return o
}

// run follows the request through its redirects to a final answer.
func (x *exchange) run() (crawl.Outcome, error) {
	h, err := x.start()
	if err != nil {
		return crawl.Outcome{}, err
	}
	x.last = h
	for {
		res, err := x.ask(h)
		if err != nil {
			return crawl.Outcome{}, err
		}
		class, _ := classify(res.StatusCode, x.answersItself(h))
		wait, _ := crawl.ParseRetryAfter(res.Header.Values("Retry-After"), res.Header.Get("Date"), time.Now())
		if x.req.OnAnswer != nil && class != crawl.ProxyAuth {
			x.req.OnAnswer(x.ctx, Answer{URL: h.url, Status: res.StatusCode, Header: res.Header, RetryAfter: wait})
		}
		if !isRedirect(res.StatusCode) {
			return x.answer(h, res, wait)
		}
		x.drain(res)
		if err := x.follow(h, res); err != nil {
			return crawl.Outcome{Status: res.StatusCode}, err
		}
	}
}

// answersItself reports whether h's answer may be the proxy's own: there is no tunnel.
func (x *exchange) answersItself(h *hop) bool { return x.viaHTTP() && h.url.Scheme == "http" }

// ask sends one request and returns the head of its answer.
func (x *exchange) ask(h *hop) (*http.Response, error) {
	x.secure.Store(h.url.Scheme == "https")
	x.link.to(linkDialling)
	x.got.Store(false)
	if x.connectStart.IsZero() {
		x.connectStart = time.Now()
	}
	req := h.request(x.traced(h.url), x.jar)
	res, err := x.rt.RoundTrip(req)
	if err != nil {
		return nil, x.failed(err, linkReason)
	}
	x.jar.SetCookies(h.url, res.Cookies())
	return res, nil
}

// answer turns a final answer into an outcome and, for a page, stores its body.
func (x *exchange) answer(h *hop, res *http.Response, retryAfter time.Duration) (crawl.Outcome, error) {
	defer func() { _ = res.Body.Close() }()
	x.page.FinalURL = shown(h.url)
	x.page.Headers = kept(res.Header, x.req.KeepHeaders)
	x.contentType = res.Header.Get("Content-Type")
	x.page.ContentType = mediaType(x.contentType)
	class, reason := classify(res.StatusCode, x.answersItself(h))
	out := crawl.Outcome{Class: class, Reason: reason, Status: res.StatusCode}
	if class == crawl.TargetTransient {
		out.RetryAfterMS = (retryAfter + time.Millisecond - 1).Milliseconds() // never undercut
	}
	if class != crawl.OK || res.StatusCode == http.StatusNotModified {
		x.drain(res)
		if x.caller.Err() != nil {
			return out, &fault{class: crawl.Canceled}
		}
		return out, nil
	}
	stored, err := x.readBody(h, res)
	out.Bytes, out.SHA256 = stored.bytes, stored.sha256
	if err != nil {
		return out, err
	}
	return out, nil
}

// shown returns u as records show it: without credentials.
func shown(u *url.URL) string {
	c := *u
	c.User = nil
	return c.String()
}
