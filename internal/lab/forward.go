package lab

import (
	"bufio"
	"bytes"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strings"
)

// maxRequestBody is the most of a request's body that a lab proxy carries.
const maxRequestBody = 1 << 20

// serveHTTP answers one request of a connection and closes it.
func (p *Proxy) serveHTTP(c net.Conn) {
	br := bufio.NewReader(c)
	req, err := http.ReadRequest(br)
	if err != nil {
		return
	}
	if p.opts.Behaviour == Stall {
		p.countHTTP(req)()
		_, _ = io.Copy(io.Discard, br) // until the client or the proxy goes
		return
	}
	if p.opts.Behaviour == Slow {
		p.pause(p.opts.Delay)
	}
	if p.guarded() && !p.admits(req.Header.Get("Proxy-Authorization")) {
		p.denied()
		// Unread bytes would turn the close into a reset that overtakes the answer.
		_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, maxRequestBody))
		reply(c, http.StatusProxyAuthRequired, "Proxy-Authenticate: Basic realm=\"lab\"\r\n")
		return
	}
	defer p.countHTTP(req)()
	switch {
	case p.opts.Behaviour == Unavailable:
		reply(c, http.StatusServiceUnavailable, "")
	case req.Method == http.MethodConnect:
		p.connect(c, br, req.Host)
	case !req.URL.IsAbs():
		reply(c, http.StatusBadRequest, "")
	default:
		p.forward(c, br, req)
	}
}

func (p *Proxy) countHTTP(req *http.Request) func() {
	if req.Method == http.MethodConnect {
		return p.enter(&p.stats.Connects)
	}
	return p.enter(&p.stats.Requests)
}

func (p *Proxy) admits(header string) bool {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.opts.Username+":"+p.opts.Password))
	return subtle.ConstantTimeCompare([]byte(header), []byte(want)) == 1
}

// reply is an answer of the proxy's own.
func reply(c net.Conn, code int, header string) {
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n", code, http.StatusText(code), header)
}

// connect joins the client with the target (RFC 9110 §9.3.6).
func (p *Proxy) connect(c net.Conn, br *bufio.Reader, target string) {
	up, err := p.dial(p.ctx, "tcp", target)
	if err != nil {
		reply(c, refusal(err), "")
		return
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = up.Close()
		return
	}
	p.join(c, br, up)
}

func refusal(err error) int {
	if errors.Is(err, ErrNotLoopback) {
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// join copies both ways until both sides have ended, and closes up.
func (p *Proxy) join(c net.Conn, br *bufio.Reader, up net.Conn) {
	if !p.keep(up) {
		_ = up.Close()
		return
	}
	defer p.drop(up)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(up, br)
		closeWrite(up)
	}()
	var from io.Reader = up
	if p.opts.Behaviour == DieMidBody {
		from = io.LimitReader(up, p.opts.DieAfter)
	}
	_, err := io.Copy(c, from)
	if p.opts.Behaviour == DieMidBody || err != nil {
		_ = c.Close()
		_ = up.Close()
	}
	closeWrite(c)
	<-done
}

func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
}

// hopByHop are the fields that end at a proxy (RFC 9110 §7.6.1).
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authorization", "Proxy-Authenticate"}

func stripHops(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}

// forward sends a plain request on and passes the answer back as it comes.
func (p *Proxy) forward(c net.Conn, br *bufio.Reader, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequestBody+1))
	if err != nil || len(body) > maxRequestBody {
		reply(c, http.StatusRequestEntityTooLarge, "")
		return
	}
	ctx, stop := p.untilGone(c, br)
	defer stop()
	out, err := http.NewRequestWithContext(ctx, req.Method, req.URL.String(), bytes.NewReader(body))
	if err != nil {
		reply(c, http.StatusBadRequest, "")
		return
	}
	out.Header, out.Host = req.Header.Clone(), req.Host
	stripHops(out.Header)
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // none came, none goes
	}
	out.Header.Set(ProxyHeader, p.opts.Name)
	resp, err := p.tr.RoundTrip(out)
	if err != nil {
		reply(c, refusal(err), "")
		return
	}
	defer func() { _ = resp.Body.Close() }()
	p.pass(c, req.Method, resp)
}

// pass writes an answer to the client. A body that breaks off is broken off
// here too, never ended as if it were whole.
func (p *Proxy) pass(c net.Conn, method string, resp *http.Response) {
	stripHops(resp.Header)
	bodiless := method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	chunked := !bodiless && resp.ContentLength < 0
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %03d %s\r\n", resp.StatusCode, http.StatusText(resp.StatusCode))
	_ = resp.Header.Write(&head)
	if chunked {
		head.WriteString("Transfer-Encoding: chunked\r\n")
	}
	head.WriteString("Connection: close\r\n\r\n")
	if _, err := c.Write(head.Bytes()); err != nil || bodiless {
		return
	}
	var body io.Reader = resp.Body
	if p.opts.Behaviour == DieMidBody {
		body = io.LimitReader(body, p.opts.DieAfter)
	}
	if !chunked {
		_, _ = io.Copy(c, body)
		return
	}
	w := httputil.NewChunkedWriter(c)
	_, err := io.Copy(w, body)
	if err == nil && p.opts.Behaviour != DieMidBody {
		_ = w.Close()
		_, _ = io.WriteString(c, "\r\n") // no trailers
	}
}
