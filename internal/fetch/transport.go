package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"holdfast/internal/crawl"
)

// link is how far the way to the target stands; it decides who is to blame.
type link struct{ v atomic.Int32 }

const (
	linkDialling   = iota // nothing stands
	linkTunnelling        // the proxy was reached, its CONNECT is not answered
	linkStands            // what happens now is between the target, the tunnel and us
)

func (l *link) to(v int32) { l.v.Store(v) }

// stage returns how far the current hop's way stands. A hop that has its
// connection is past blaming anyone for it, even if another dial of the
// transport's is still under way.
func (x *exchange) stage() int32 {
	if x.got.Load() {
		return linkStands
	}
	return x.link.v.Load()
}

func (x *exchange) viaHTTP() bool {
	p := x.req.Proxy
	return p != nil && (p.Scheme == "http" || p.Scheme == "https")
}

// connects reports whether the current hop needs a CONNECT.
func (x *exchange) connects() bool { return x.viaHTTP() && x.secure.Load() }

// tunnelStands notes the moment from which the proxy is no longer to blame alone.
func (x *exchange) tunnelStands() {
	x.link.to(linkStands)
	if x.connectMS.Load() == 0 {
		x.connectMS.Store(max(1, time.Since(x.connectStart).Milliseconds()))
	}
}

// transport returns the exchange's own transport. To net/http an https proxy is
// an http one, since dial has already made TLS to it: so every fault of the way
// to the proxy is seen in one place.
func (x *exchange) transport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t := &http.Transport{
		DialContext:            x.dial,
		TLSClientConfig:        x.c.tlsConfig(""),
		TLSHandshakeTimeout:    x.lim.Connect,
		MaxResponseHeaderBytes: x.lim.MaxHeader,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    1,
		Protocols:              protocols,
	}
	if x.viaHTTP() {
		u := x.req.Proxy.URL()
		u.Scheme = "http"
		t.Proxy = http.ProxyURL(u)
		t.ProxyConnectHeader = http.Header{"User-Agent": {x.userAgent()}}
		t.OnProxyConnectResponse = x.onConnect
	}
	return t
}

func (x *exchange) userAgent() string {
	if x.req.UserAgent != "" {
		return x.req.UserAgent
	}
	return crawl.DefaultUserAgent
}

// onConnect judges a CONNECT's answer by its status, before its reason phrase can
// get into an error.
func (x *exchange) onConnect(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	switch {
	case res.StatusCode == http.StatusOK:
		x.conns.deadline(time.Time{})
		x.tunnelStands()
		return nil
	case res.StatusCode == http.StatusProxyAuthRequired:
		return &fault{crawl.ProxyAuth, crawl.ReasonProxyAuth}
	case res.StatusCode >= 500:
		return &fault{crawl.ProxyFault, crawl.ReasonProxyStatus}
	}
	return &fault{crawl.ProxyFault, crawl.ReasonProxyProtocol}
}

// traced returns the context of one hop's request: BeforeRequest is asked when
// the connection is there and nothing is written to it yet. If it refuses, every
// connection is closed before net/http gets to write.
func (x *exchange) traced(u *url.URL) context.Context {
	return httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			x.got.Store(true)
			if x.req.BeforeRequest != nil {
				if err := x.req.BeforeRequest(x.ctx, u); err != nil {
					x.cancel(&hookError{err})
					x.conns.close()
					return
				}
			}
			x.requests++
		},
	})
}

// failed classes an error of a round trip or, with a body's own reason, of a read.
func (x *exchange) failed(err error, reason func(error) crawl.Reason) error {
	if x.caller.Err() != nil {
		return &fault{class: crawl.Canceled}
	}
	if x.ctx.Err() != nil {
		return x.ended(context.Cause(x.ctx))
	}
	var f *fault
	switch {
	case errors.As(err, &f):
		return f
	case headerTooLong(err):
		return tooLarge()
	case x.stage() == linkTunnelling:
		if isTimeout(err) || isReset(err) {
			return &fault{crawl.ProxyFault, dialReason(err)}
		}
		return &fault{crawl.ProxyFault, crawl.ReasonProxyProtocol}
	}
	return ambiguous(reason(err))
}

// ended classes the cause for which the exchange itself ended its context.
func (x *exchange) ended(cause error) error {
	var hook *hookError
	switch {
	case errors.As(cause, &hook):
		return hook
	case errors.Is(cause, errTooSlow):
		return ambiguous(crawl.ReasonTooSlow)
	case x.stage() == linkStands:
		return ambiguous(crawl.ReasonTimeout)
	case x.req.Proxy != nil:
		return &fault{crawl.ProxyFault, crawl.ReasonConnectTimeout}
	}
	return ambiguous(crawl.ReasonConnectTimeout)
}

func (c *Client) tlsConfig(serverName string) *tls.Config {
	if ip := net.ParseIP(serverName); ip != nil {
		serverName = ip.String()
	}
	return &tls.Config{
		RootCAs:    c.opts.RootCAs,
		MinVersion: tls.VersionTLS12,
		ServerName: serverName,
		NextProtos: []string{"http/1.1"},
	}
}
