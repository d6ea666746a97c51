package fetch

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"holdfast/internal/crawl"
)

// Request is one exchange: redirects included, through one proxy.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
	// Proxy is nil to ask from the own address.
	Proxy  *crawl.Proxy
	Limits Limits
	// UserAgent is sent as it is; From too, if not empty (RFC 9110 §10.1.2).
	UserAgent string
	From      string
	// AllowPrivate lets loopback and private targets through the address guard.
	AllowPrivate bool
	// KeepHeaders is the allow-list of Page.Headers, lower-case.
	KeepHeaders []string
	// Hops is the number of redirects already followed in earlier passes. With any,
	// URL is another origin's and Authorization and Cookie are not sent.
	Hops int

	// OnAnswer is called with each answer's status and header (redirects too)
	// before its body is read; Retry-After is already parsed. A proxy's own 407 is
	// no answer. May be nil.
	OnAnswer func(ctx context.Context, a Answer)
	// OnRedirect is asked before a redirect is followed to another host. An error
	// ends the exchange: *Stop with an Outcome of its own, any other as it is.
	// May be nil: all allowed.
	OnRedirect func(ctx context.Context, to *url.URL, hops int) error
	// BeforeRequest is called just before a request is written (the tunnel
	// stands). An error ends the exchange as OnRedirect's does. May be nil.
	BeforeRequest func(ctx context.Context, to *url.URL) error
	// NewBody opens the store for a 2xx body. Nil: the body is read and counted only.
	NewBody func() (Body, error)
}

// Body is where a decoded body goes: results.Body satisfies it.
type Body interface {
	io.Writer
	Commit() (crawl.BodyRef, string, error)
	Discard()
}

// Answer is the head of one response.
type Answer struct {
	URL    *url.URL
	Status int
	Header http.Header
	// RetryAfter is 0 where there is none, or an invalid or past one.
	RetryAfter time.Duration
}

// Limits bound one exchange. A zero field means its default.
type Limits struct {
	// Total is the whole time, redirects and body included. Default 30 s.
	Total time.Duration
	// Connect is the time for the proxy's tunnel to stand. Default 10 s.
	Connect time.Duration
	// MaxWire and MaxBody cap the bytes read and the decoded bytes. Default 16 MiB each.
	MaxWire int64
	MaxBody int64
	// MaxRatio caps decoded/wire once 1 MiB is decoded. Default 200.
	MaxRatio int
	// MaxLayers caps the Content-Encoding layers. Default 2.
	MaxLayers int
	// MaxHeader caps a response's header. Default 256 KiB.
	MaxHeader int64
	// MaxRedirects. Default 10.
	MaxRedirects int
	// MinRate is the least bytes a second over 10 s of reading a body. Default 128.
	MinRate int64
}

// Result is what an exchange came to. It is never an error: what went wrong is
// the Outcome's class and reason. Err is not nil only where the caller's own
// hooks or the body store failed (disk full): infrastructure, not HTTP. The
// Outcome then has no class.
type Result struct {
	Outcome crawl.Outcome
	Page    crawl.Page
	Err     error
}

// Stop is the error by which a hook ends an exchange with an outcome of its own.
type Stop struct{ Outcome crawl.Outcome }

func (s *Stop) Error() string { return "fetch: stopped: " + string(s.Outcome.Class) }
