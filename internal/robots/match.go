package robots

import (
	"strings"
	"time"
)

// rule is one Allow or Disallow, its pattern normalised.
type rule struct {
	pattern string
	allow   bool
}

// Ruleset is what a robots.txt says to one crawler. The zero value allows everything.
type Ruleset struct {
	rules []rule
	delay time.Duration
	paced bool
}

// CrawlDelay returns the crawl-delay, false if there is none.
func (s *Ruleset) CrawlDelay() (time.Duration, bool) { return s.delay, s.paced }

// Allowed reports whether a path with its query may be asked for: the longest
// pattern that matches decides, Allow wins a tie, nothing means yes (RFC 9309
// §2.2.2). /robots.txt itself is always allowed.
func (s *Ruleset) Allowed(pathAndQuery string) bool {
	pathAndQuery, _, _ = strings.Cut(pathAndQuery, "#")
	if !strings.HasPrefix(pathAndQuery, "/") {
		pathAndQuery = "/" + pathAndQuery
	}
	if pathAndQuery == "/robots.txt" {
		return true
	}
	path := normalise(pathAndQuery, false)
	longest, allowed := -1, true
	for _, r := range s.rules {
		n := len(r.pattern)
		if n < longest || n == longest && !r.allow {
			continue
		}
		if matches(r.pattern, path) {
			longest, allowed = n, r.allow
		}
	}
	return allowed
}

// matches reports whether a normalised pattern matches a normalised path from
// its start. Taking each part between "*" at its first place is enough: what is
// left for the rest is never longer any other way.
func matches(pattern, path string) bool {
	pattern, anchored := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(path, parts[0]) {
		return false
	}
	path = path[len(parts[0]):]
	if len(parts) == 1 {
		return !anchored || path == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		i := strings.Index(path, part)
		if i < 0 {
			return false
		}
		path = path[i+len(part):]
	}
	if anchored {
		return strings.HasSuffix(path, parts[last])
	}
	return strings.Contains(path, parts[last])
}

// normalise brings a path and a pattern to one form (RFC 9309 §2.2.2): percent-
// encoded unreserved characters are decoded, octets that cannot stand in a URL
// are encoded, hex is upper case. "*" and a "$" at the end stay special in a
// pattern and are encoded everywhere else, as "%2A" and "%24" mean them literally.
func normalise(s string, pattern bool) string {
	var b strings.Builder
	b.Grow(len(s))
	star := false // the last thing written is a "*"
	for i := 0; i < len(s); i++ {
		c := s[i]
		special := pattern && (c == '*' || c == '$' && i == len(s)-1)
		switch {
		case special && c == '*':
			if !star {
				b.WriteByte(c)
			}
			star = true
			continue
		case special:
			b.WriteByte(c)
		case c == '%' && i+2 < len(s) && hexed(s[i+1]) && hexed(s[i+2]):
			octet := unhex(s[i+1])<<4 | unhex(s[i+2])
			if unreserved(octet) {
				b.WriteByte(octet)
			} else {
				encode(&b, octet)
			}
			i += 2
		case c <= ' ' || c >= 0x7f || c == '*' || c == '$':
			encode(&b, c)
		default:
			b.WriteByte(c)
		}
		star = false
	}
	return b.String()
}

func encode(b *strings.Builder, c byte) {
	const hex = "0123456789ABCDEF"
	b.Write([]byte{'%', hex[c>>4], hex[c&15]})
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func hexed(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}
