package frontier

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"holdfast/internal/crawl"
)

// MaxURL is the longest URL that is taken, in bytes.
const MaxURL = 8 << 10

// URLError says why a URL is not taken. It never holds the URL, which may carry
// credentials.
type URLError struct {
	Problem string
	// Hint says what to do, in one line; it may be empty.
	Hint string
}

func (e *URLError) Error() string {
	if e.Hint == "" {
		return e.Problem
	}
	return e.Problem + " (" + e.Hint + ")"
}

// Canonical returns the form of an http or https URL that requests are deduped by:
// parsed as browsers do (WHATWG URL: host lower-case and in ASCII, default port and
// dot segments dropped), without fragment, with the same percent-encoding for the
// same character (RFC 3986 §6.2.2: unreserved ones decoded, hex digits upper-case),
// and the query's parameters sorted by name, those of one name in their order.
//
// It is never requested: the original is. Canonical of its result is its result.
// Errors are *URLError.
func Canonical(raw string) (string, error) {
	switch {
	case len(raw) > MaxURL:
		return "", &URLError{"the URL is longer than 8 KiB", ""}
	case !utf8.ValidString(raw):
		return "", &URLError{"the URL is not UTF-8", "percent-encode other bytes"}
	}
	// The parser's work grows with the square of these; no honest URL has many.
	if strings.Count(authority(raw), "@") > 8 {
		return "", &URLError{"not a valid URL", "its host part holds many @"}
	}
	u, err := whatwg.Parse(raw)
	if err != nil {
		return "", &URLError{"not a valid URL", "write it in full: https://example.org/page"}
	}
	if s := u.Scheme(); s != "http" && s != "https" {
		return "", &URLError{"the scheme is not http or https", "write it in full: https://example.org/page"}
	}
	if u.Hostname() == "" {
		return "", &URLError{"the URL has no host", "write it in full: https://example.org/page"}
	}
	var b strings.Builder
	b.WriteString(u.Scheme() + "://")
	if u.Username() != "" || u.Password() != "" {
		b.WriteString(u.Username())
		if u.Password() != "" {
			b.WriteString(":" + u.Password())
		}
		b.WriteByte('@')
	}
	b.WriteString(u.Host())
	b.WriteString(normalizePercent(u.Pathname()))
	if q := sortQuery(normalizePercent(u.Query())); q != "" {
		b.WriteString("?" + q)
	}
	return b.String(), nil
}

// authority returns about the part between scheme and path.
func authority(raw string) string {
	_, rest, _ := strings.Cut(raw, ":")
	rest = strings.TrimLeft(rest, "/\\ \t\r\n")
	if end := strings.IndexAny(rest, `/\?#`); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// sortQuery sorts by name and keeps the order within a name, which may matter to
// the site; empty parts are dropped.
func sortQuery(q string) string {
	if q == "" {
		return ""
	}
	parts := slices.DeleteFunc(strings.Split(q, "&"), func(p string) bool { return p == "" })
	slices.SortStableFunc(parts, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return strings.Compare(a, b)
	})
	return strings.Join(parts, "&")
}

// normalizePercent decodes unreserved characters, writes the digits of others in
// upper case and encodes a "%" that starts no triplet.
func normalizePercent(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			b.WriteString("%25")
			continue
		}
		raw, err := hex.DecodeString(s[i+1 : i+3])
		switch {
		case err != nil:
			b.WriteString("%25")
			continue
		case unreserved(raw[0]):
			b.WriteByte(raw[0])
		default:
			b.WriteString("%" + strings.ToUpper(s[i+1:i+3]))
		}
		i += 2
	}
	return b.String()
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// Fingerprint returns the request's id: 32 lower-case hex digits of the SHA-256 of
// method, canonical URL and body hash, or of the user's own key.
// Errors are *URLError.
func Fingerprint(r crawl.Request) (string, error) {
	canonical, err := Canonical(r.URL)
	if err != nil {
		return "", err
	}
	return fingerprint(r, canonical), nil
}

func fingerprint(r crawl.Request, canonical string) string {
	method := r.Method
	if method == "" {
		method = "GET"
	}
	body := ""
	if r.Body != "" {
		sum := sha256.Sum256([]byte(r.Body))
		body = hex.EncodeToString(sum[:])
	}
	// The first words differ, so that no key can pass for a request.
	input := "request\n" + method + "\n" + canonical + "\n" + body
	if r.Key != "" {
		input = "key\n" + r.Key
	}
	sum := sha256.Sum256([]byte(input))
	return hex.EncodeToString(sum[:16])
}

// NewEntry checks a request and makes it ready for the frontier: the method in
// upper case, the fingerprint, the key of its host's slot.
//
// Refused, as *URLError: a URL that Canonical refuses or that is not absolute as
// written, one with a user name or password (it would stand in plain text in every
// id and record), a method or header that no HTTP request may have, Meta over 1 KiB.
func NewEntry(r crawl.Request, depth int, parent string) (Entry, error) {
	r.Method = strings.ToUpper(r.Method)
	if r.Method == "" {
		r.Method = "GET"
	}
	if err := checkRequest(&r); err != nil {
		return Entry{}, err
	}
	canonical, err := Canonical(r.URL)
	if err != nil {
		return Entry{}, err
	}
	if strings.IndexFunc(r.URL, func(c rune) bool { return c <= ' ' || c == 0x7f }) >= 0 {
		return Entry{}, &URLError{"the URL holds white space or a control character", "one URL a line; write a space as %20"}
	}
	// What is asked is the URL as written, so Go has to read it as browsers do.
	written, err := url.Parse(r.URL)
	if err != nil || written.Host == "" || written.Hostname() == "" {
		return Entry{}, &URLError{"not a valid URL", "write it in full: https://example.org/page"}
	}
	slot, err := url.Parse(canonical)
	if err != nil {
		return Entry{}, &URLError{"not a valid URL", "write it in full: https://example.org/page"}
	}
	if written.User != nil || slot.User != nil {
		return Entry{}, &URLError{"the URL holds a user name or password", "it would show in ids and records; send a header instead"}
	}
	return Entry{ID: fingerprint(r, canonical), Host: crawl.HostKey(slot), Depth: depth, Parent: parent, Request: r}, nil
}
