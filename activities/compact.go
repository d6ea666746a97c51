package activities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"holdfast/internal/crawl"
)

// MaxCommitted bounds what is committed under a lease, and so what its tombstone
// takes in Redis, in bytes; a usual page takes some 700.
const MaxCommitted = 64 << 10

// Caps of a page's parts. A server chooses them, within the fetch's own limits of
// 8 KiB a URL and 256 KiB of header.
const (
	maxHeaders    = 32
	maxHeaderText = 512
	maxMediaType  = 128
	// maxRedirects is the number of redirects that are told, maxRedirectTo the
	// size up to which all but the last are.
	maxRedirects  = 20
	maxRedirectTo = 512
)

// compact returns p within its caps: long header values and the URLs of long
// redirects on the way are cut, the last redirect and the final URL are whole.
func compact(p crawl.Page) *crawl.Page {
	if n := len(p.Redirects); n > maxRedirects {
		p.Redirects = append(slices.Clone(p.Redirects[:maxRedirects-1]), p.Redirects[n-1])
	}
	p.Redirects = slices.Clone(p.Redirects)
	for i := range p.Redirects[:max(len(p.Redirects)-1, 0)] {
		p.Redirects[i].To = cut(p.Redirects[i].To, maxRedirectTo)
	}
	names := make([]string, 0, len(p.Headers))
	for name := range p.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	headers := make(map[string]string, len(names))
	for _, name := range names[:min(len(names), maxHeaders)] {
		headers[cut(name, maxMediaType)] = cut(p.Headers[name], maxHeaderText)
	}
	if p.Headers != nil {
		p.Headers = headers
	}
	p.ContentType, p.Charset = cut(p.ContentType, maxMediaType), cut(p.Charset, maxMediaType)
	return &p
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}

// encodeCommitted returns c as JSON, URLs as they are. What is over MaxCommitted
// all the same (bytes that JSON writes as six) loses its headers and redirects.
func encodeCommitted(c crawl.Committed) ([]byte, error) {
	for _, drop := range []func(*crawl.Page){
		nil,
		func(p *crawl.Page) { p.Headers = nil },
		func(p *crawl.Page) { p.Redirects = nil },
		func(p *crawl.Page) { p.FinalURL = "" },
	} {
		if drop != nil && c.Page != nil {
			page := *c.Page
			drop(&page)
			c.Page = &page
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(c); err != nil {
			return nil, fmt.Errorf("encode outcome: %w", err)
		}
		if blob := bytes.TrimSuffix(b.Bytes(), []byte("\n")); len(blob) <= MaxCommitted {
			return blob, nil
		}
	}
	return nil, fmt.Errorf("encode outcome: over %d bytes", MaxCommitted)
}
