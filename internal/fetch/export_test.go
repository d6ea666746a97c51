package fetch

import (
	"io"
	"net/netip"
	"net/url"
	"time"

	"holdfast/internal/crawl"
)

// SetRateWindow shortens the time over which MinRate holds.
func (c *Client) SetRateWindow(d time.Duration) { c.rateWindow = d }

// CheckURL runs the address guard over a URL as Do would.
func (c *Client) CheckURL(raw string, allowPrivate bool) (host string, reason crawl.Reason) {
	u, err := parseURL(raw)
	if err != nil {
		return "", crawl.ReasonInvalidURL
	}
	if f := c.guard.check(u, allowPrivate); f != nil {
		return u.Host, f.reason
	}
	return u.Host, ""
}

// AddrAllowed runs the guard over an address.
func (c *Client) AddrAllowed(a netip.Addr, allowPrivate bool) bool {
	return c.guard.addrAllowed(a, allowPrivate)
}

// CanonicalHost is the guard's canonicalisation.
func CanonicalHost(host string) (string, bool) { return canonicalHost("http", host) }

// Decode decodes r through codings under a cap.
func Decode(codings []string, r io.Reader, maxBytes int64) (io.ReadCloser, error) {
	return newDecoder(codings, 3, r, func(r io.Reader) io.Reader {
		return &capped{r: r, wire: &wireReader{n: 1 << 40}, max: maxBytes, ratio: 1 << 20}
	})
}

// ParseURL reads a URL as Do does.
func ParseURL(raw string) (*url.URL, error) { return parseURL(raw) }

// CharsetOf finds a text's charset.
func CharsetOf(media, header string, head []byte) string { return charsetOf(media, header, head) }
