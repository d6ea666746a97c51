package fetch

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"holdfast/internal/crawl"
)

// maxURL bounds a URL, in bytes: a redirect's goes into records and history.
// RFC 9110 §4.1 asks for at least 8,000.
const maxURL = 8 << 10

// hop is one request of an exchange; follow rewrites it for the next.
type hop struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	hops   int
	seen   map[string]bool
}

// start builds the first hop from the caller's request.
func (x *exchange) start() (*hop, error) {
	u, err := parseURL(x.req.URL)
	if err != nil {
		return nil, permanent(crawl.ReasonInvalidURL)
	}
	h := &hop{method: x.req.Method, url: u, body: x.req.Body, hops: x.req.Hops, seen: map[string]bool{}}
	if h.method == "" {
		h.method = http.MethodGet
	}
	if h.header = x.header(u); h.header == nil || !httpguts.ValidHeaderFieldName(h.method) || h.method == http.MethodConnect {
		return nil, permanent(crawl.ReasonInvalidURL)
	}
	if f := x.c.guard.check(u, x.req.AllowPrivate); f != nil {
		return nil, f
	}
	h.seen[h.key(x.jar)] = true
	return h, nil
}

// header returns the header to send, nil if it cannot be sent as written.
// Credentials of u move into it, so that they follow the rules of redirects and
// stay out of every URL that is shown.
func (x *exchange) header(u *url.URL) http.Header {
	out := http.Header{
		"Accept":          {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
		"Accept-Encoding": {"gzip, deflate, br, zstd"},
	}
	for name, values := range x.req.Header {
		key := textproto.CanonicalMIMEHeaderKey(name)
		if ofConnection(key) {
			continue
		}
		if !httpguts.ValidHeaderFieldName(key) {
			return nil
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil
			}
		}
		out[key] = append([]string(nil), values...)
	}
	if x.req.UserAgent != "" || out.Get("User-Agent") == "" {
		out.Set("User-Agent", x.userAgent())
	}
	if x.req.From != "" {
		out.Set("From", x.req.From)
	}
	if u.User != nil {
		if out.Get("Authorization") == "" {
			password, _ := u.User.Password()
			out.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		}
		u.User = nil
	}
	if !httpguts.ValidHeaderFieldValue(out.Get("User-Agent")) || !httpguts.ValidHeaderFieldValue(out.Get("From")) {
		return nil
	}
	return out
}

// ofConnection reports headers that belong to one connection or to the proxy
// (RFC 9110 §7.6.1): the transport sets them, nobody else.
func ofConnection(key string) bool {
	switch key {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Authenticate",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Expect":
		return true
	}
	return false
}

// request returns the hop as net/http sends it, with the jar's cookies.
func (h *hop) request(ctx context.Context, jar http.CookieJar) *http.Request {
	r := &http.Request{
		Method: h.method, URL: h.url, Host: h.url.Host,
		Header: h.header.Clone(),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if c := cookies(h.header.Get("Cookie"), jar.Cookies(h.url)); c != "" {
		r.Header.Set("Cookie", c)
	}
	if len(h.body) > 0 {
		r.ContentLength = int64(len(h.body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(h.body)), nil }
		r.Body, _ = r.GetBody()
	}
	return r.WithContext(ctx)
}

// cookies joins the caller's own Cookie header with the jar's cookies; of one
// name, what the site set last counts.
func cookies(own string, jar []*http.Cookie) string {
	if len(jar) == 0 {
		return own
	}
	set := make(map[string]bool, len(jar))
	for _, c := range jar {
		set[c.Name] = true
	}
	var parts []string
	for _, part := range strings.Split(own, ";") {
		part = strings.TrimSpace(part)
		if name, _, _ := strings.Cut(part, "="); part != "" && !set[name] {
			parts = append(parts, part)
		}
	}
	for _, c := range jar {
		parts = append(parts, c.Name+"="+c.Value)
	}
	return strings.Join(parts, "; ")
}

// parseURL reads a URL as it was written. What cannot go on a request line is
// percent-encoded as browsers do (a space, raw UTF-8 in a query, a stray "%");
// nothing else changes.
func parseURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if len(raw) > maxURL {
		return nil, url.InvalidHostError("")
	}
	u, err := url.Parse(raw)
	var escape url.EscapeError
	if errors.As(err, &escape) {
		path, rest := splitPath(raw)
		u, err = url.Parse(fixEscapes(path) + rest)
	}
	if err != nil {
		return nil, err
	}
	u.RawQuery = encodeQuery(u.RawQuery)
	return u, nil
}

// splitPath cuts a URL before its query or fragment.
func splitPath(s string) (path, rest string) {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// fixEscapes encodes each "%" that two hex digits do not follow.
func fixEscapes(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])) {
			b.WriteString("%25")
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func encodeQuery(q string) string {
	var b strings.Builder
	for i := range len(q) {
		c := q[i]
		if c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>' {
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
