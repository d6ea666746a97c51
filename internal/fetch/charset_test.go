package fetch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
)

func TestCharsetsAreFound(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, media, header, head, want string }{
		{"only in a meta", "text/html", "text/html", `<meta charset="windows-1251">`, "windows-1251"},
		{"only in an http-equiv meta", "text/html", "text/html", `<meta http-equiv="Content-Type" content="text/html; charset=gb2312">`, "gbk"},
		{"the header before the meta", "text/html", "text/html; charset=koi8-r", `<meta charset="windows-1251">`, "koi8-r"},
		{"the mark before the header", "text/html", "text/html; charset=koi8-r", "\xef\xbb\xbf<p>", "utf-8"},
		{"an unknown header charset", "text/html", "text/html; charset=klingon", `<meta charset="windows-1251">`, "windows-1251"},
		{"a broken header", "text/html", `text/html; charset="`, `<meta charset="windows-1251">`, "windows-1251"},
		{"an XML declaration", "application/xml", "application/xml", `<?xml version="1.0" encoding="Shift_JIS"?><a/>`, "shift_jis"},
		{"valid UTF-8", "text/plain", "text/plain", "grün und mehr", "utf-8"},
		{"JSON is UTF-8", "application/json", "application/json", `{"a":1}`, "utf-8"},
		{"XML is UTF-8", "application/xml", "application/xml", `<a/>`, "utf-8"},
		{"nothing to go by", "text/html", "text/html", "<p>caf\xe9 noir", "windows-1252"},
		{"no text", "image/png", "image/png", "\x89PNG", ""},
	}
	for _, tc := range cases {
		if got := fetch.CharsetOf(tc.media, tc.header, []byte(tc.head)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestAPageIsDescribed(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Content-Type"] = nil
		if r.URL.Path == "/typed" {
			h.Set("Content-Type", "Text/HTML; Charset=UTF-8")
		}
		h.Set("ETag", `"x"`)
		h.Set("Set-Cookie", "a=secret")
		h.Set("X-Other", "y")
		h.Set("Server", strings.Repeat("s", 5000)+"\xff")
		fmt.Fprint(w, "<!DOCTYPE html><p>hi")
	})
	for _, path := range []string{"/typed", "/untyped"} {
		r := get(srv.URL+path, nil)
		r.KeepHeaders = []string{"etag", "set-cookie", "authorization", "server", "last-modified"}
		res := do(t, newClient(t), r)
		want(t, res, crawl.OK, "")
		p := res.Page
		if p.ContentType != "text/html" || p.Charset != "utf-8" || p.FinalURL != srv.URL+path {
			t.Errorf("%s: page %+v", path, p)
		}
		if p.Headers["etag"] != `"x"` || len(p.Headers) != 2 || len(p.Headers["server"]) != 1024 {
			t.Errorf("%s: headers %v", path, p.Headers)
		}
	}
}

func TestTheRequestCarriesWhoWeAre(t *testing.T) {
	t.Parallel()
	var got http.Header
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	r := get(srv.URL, nil)
	r.UserAgent, r.From = "holdfast/1 (+https://example.org/bot)", "bot@example.org"
	r.Header = http.Header{"user-agent": {"other"}, "X-A": {"1", "2"}}
	want(t, do(t, newClient(t), r), crawl.OK, "")
	if got.Get("User-Agent") != r.UserAgent || got.Get("From") != r.From || len(got.Values("X-A")) != 2 {
		t.Errorf("sent %v", got)
	}
	if got.Get("Accept-Encoding") != "gzip, deflate, br, zstd" || got.Get("Accept") == "" {
		t.Errorf("sent %v", got)
	}
	for _, bad := range []http.Header{{"X-A": {"a\r\nInjected: 1"}}, {"X A": {"1"}}} {
		r.Header = bad
		want(t, do(t, newClient(t), r), crawl.Permanent, crawl.ReasonInvalidURL)
	}
}
