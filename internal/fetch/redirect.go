package fetch

import (
	"net/http"
	"net/url"
	"strings"

	"holdfast/internal/crawl"
)

// follow turns h into the request that a redirect asks for (RFC 9110 §15.4), or
// says why it is not followed. Where it pointed is recorded either way.
func (x *exchange) follow(h *hop, res *http.Response) error {
	to, err := target(h.url, res.Header.Get("Location"))
	x.page.FinalURL = shown(h.url)
	if err != nil {
		return &fault{crawl.TargetPermanent, crawl.ReasonBadRedirect}
	}
	f := x.c.guard.check(to, x.req.AllowPrivate)
	x.page.Redirects = append(x.page.Redirects, crawl.Redirect{Status: res.StatusCode, To: shown(to)})
	if f != nil {
		if f.reason == crawl.ReasonInvalidURL {
			return &fault{crawl.TargetPermanent, crawl.ReasonBadRedirect}
		}
		return f
	}
	if h.hops >= x.lim.MaxRedirects {
		return &fault{crawl.TargetPermanent, crawl.ReasonTooManyRedirects}
	}
	from := *h.url
	h.rewrite(res.StatusCode, to)
	h.hops++
	if key := h.key(x.jar); h.seen[key] {
		return &fault{crawl.TargetPermanent, crawl.ReasonRedirectLoop}
	} else {
		h.seen[key] = true
	}
	if x.req.OnRedirect != nil && crawl.HostKey(&from) != crawl.HostKey(to) {
		if err := x.req.OnRedirect(x.ctx, to, h.hops); err != nil {
			return &hookError{err}
		}
	}
	return nil
}

// target resolves a Location against the URL that answered it. Credentials in it
// are not a page's to give and are dropped; a fragment is inherited (RFC 9110 §10.2.2).
func target(base *url.URL, location string) (*url.URL, error) {
	if strings.TrimSpace(location) == "" {
		return nil, url.InvalidHostError("")
	}
	ref, err := parseURL(location)
	if err != nil {
		return nil, err
	}
	to := base.ResolveReference(ref)
	to.User = nil
	if to.Fragment == "" {
		to.Fragment, to.RawFragment = base.Fragment, base.RawFragment
	}
	if len(to.String()) > maxURL {
		return nil, url.InvalidHostError("")
	}
	return to, nil
}

// rewrite changes method, URL and header for a redirect. What was meant for one
// origin is not told to another, and not told again when a chain comes back.
func (h *hop) rewrite(status int, to *url.URL) {
	if status == http.StatusSeeOther && h.method != http.MethodHead ||
		h.method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound) {
		h.method, h.body = http.MethodGet, nil
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
			h.header.Del(name)
		}
	}
	if crawl.Origin(h.url) != crawl.Origin(to) {
		for _, name := range []string{"Authorization", "Cookie", "Cookie2", "Proxy-Authorization", "Www-Authenticate"} {
			h.header.Del(name)
		}
	}
	h.url = to
}

// key tells requests apart for the detection of loops. Cookies are part of it: a
// site that sets one and sends us back to the same URL is not a loop.
func (h *hop) key(jar http.CookieJar) string {
	u := *h.url
	u.Fragment, u.RawFragment = "", ""
	return h.method + " " + u.String() + "\n" + cookies(h.header.Get("Cookie"), jar.Cookies(&u))
}
