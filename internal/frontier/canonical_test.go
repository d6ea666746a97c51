package frontier_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, want string }{
		"host and scheme are lower-case":             {"HTTP://EXAMPLE.org/Path", "http://example.org/Path"},
		"the default port goes":                      {"https://example.org:443/", "https://example.org/"},
		"another port stays":                         {"https://example.org:8443/", "https://example.org:8443/"},
		"the other scheme's port stays":              {"http://example.org:443/", "http://example.org:443/"},
		"an empty path is a slash":                   {"http://example.org", "http://example.org/"},
		"the fragment goes":                          {"http://example.org/a#b?c", "http://example.org/a"},
		"dot segments go":                            {"http://example.org/a/./b/../c", "http://example.org/a/c"},
		"encoded dot segments go":                    {"http://example.org/a/%2e/b/%2E%2e/c", "http://example.org/a/c"},
		"double slashes stay":                        {"http://example.org//a//b", "http://example.org//a//b"},
		"parameters are sorted by name":              {"http://example.org/?B=1&A=2", "http://example.org/?A=2&B=1"},
		"one name's values keep their order":         {"http://example.org/?b=2&a=9&b=1", "http://example.org/?a=9&b=2&b=1"},
		"a name without value sorts too":             {"http://example.org/?b&a=", "http://example.org/?a=&b"},
		"empty parameters go":                        {"http://example.org/?&a=1&&", "http://example.org/?a=1"},
		"an empty query goes":                        {"http://example.org/?", "http://example.org/"},
		"unreserved characters are decoded":          {"http://example.org/%7Ebob/%41?%71=%2D", "http://example.org/~bob/A?q=-"},
		"reserved ones keep their encoding":          {"http://example.org/a%2fb?c=%26&d=%3d", "http://example.org/a%2Fb?c=%26&d=%3D"},
		"a plus is no %20":                           {"http://example.org/?q=a+b%20c", "http://example.org/?q=a+b%20c"},
		"a lone percent sign is encoded":             {"http://example.org/100%?x=%zz", "http://example.org/100%25?x=%25zz"},
		"what decodes to a triplet does not decode":  {"http://example.org/%2%35", "http://example.org/%2525"},
		"letters beyond ASCII are encoded":           {"http://example.org/ä?ö=ü", "http://example.org/%C3%A4?%C3%B6=%C3%BC"},
		"an international host is in ASCII":          {"http://BÜCHER.example/", "http://xn--bcher-kva.example/"},
		"an odd IPv4 is the plain one":               {"http://0x7f000001/", "http://127.0.0.1/"},
		"an IPv6 is compressed":                      {"http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]/"},
		"a back slash is a slash":                    {`http://example.org\a\b`, "http://example.org/a/b"},
		"tabs and line ends go":                      {" http://exam\tple.org/a\n ", "http://example.org/a"},
		"user and password stay":                     {"http://u:p@example.org/", "http://u:p@example.org/"},
		"a semicolon separates nothing":              {"http://example.org/?b=1;a=2", "http://example.org/?b=1;a=2"},
		"a second question mark belongs to the text": {"http://example.org/?b=?&a=1", "http://example.org/?a=1&b=?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := frontier.Canonical(tc.raw)
			if err != nil || got != tc.want {
				t.Fatalf("%q, %v; want %q", got, err, tc.want)
			}
			if again, err := frontier.Canonical(got); err != nil || again != got {
				t.Errorf("canonical again: %q, %v", again, err)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "/a", "example.org/a", "ftp://example.org/", "file:///etc/passwd", "javascript:alert(1)", "data:,x",
		"mailto:a@b.example", "http://", "http:///", "http://exa mple.org/", "http://example.org:99999/", "http://[::1/",
		"http://a%00b/", "http://example.org/\xff", "http://example.org/" + strings.Repeat("a", frontier.MaxURL),
		"http://secret:word@exa mple/", "http://" + strings.Repeat("@", 4000) + "example.org/",
	} {
		got, err := frontier.Canonical(raw)
		var u *frontier.URLError
		if !errors.As(err, &u) {
			t.Errorf("%.40q: %q, %v", raw, got, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error quotes the URL: %v", err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	id := func(r crawl.Request) string {
		t.Helper()
		id, err := frontier.Fingerprint(r)
		must(t, err)
		if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
			t.Fatalf("id %q", id)
		}
		return id
	}
	base := id(crawl.Request{URL: "http://a.example/?b=1&a=2"})
	// A change of this value would make every stored campaign fetch all again.
	if want := "44e6a7c27b64d12e0497d496d349c5b0"; base != want {
		t.Errorf("fingerprint %s, want %s", base, want)
	}
	for name, r := range map[string]crawl.Request{
		"order of parameters": {URL: "HTTP://A.example:80/?a=2&b=1#top"},
		"GET written out":     {URL: "http://a.example/?a=2&b=1", Method: "GET"},
		"headers and meta":    {URL: "http://a.example/?a=2&b=1", Headers: map[string]string{"X": "y"}, Meta: []byte("1")},
	} {
		if id(r) != base {
			t.Errorf("%s changes the fingerprint", name)
		}
	}
	others := map[string]string{base: "the plain request"}
	for name, r := range map[string]crawl.Request{
		"method":                  {URL: "http://a.example/?a=2&b=1", Method: "POST"},
		"method and body":         {URL: "http://a.example/?a=2&b=1", Method: "POST", Body: "x"},
		"a body":                  {URL: "http://a.example/?a=2&b=1", Body: "x"},
		"a key":                   {URL: "http://a.example/?a=2&b=1", Key: "k"},
		"another URL":             {URL: "http://a.example/?a=2&b=2"},
		"a key that apes a query": {URL: "http://a.example/", Key: "GET\nhttp://a.example/?a=2&b=1\n"},
	} {
		got := id(r)
		if first, ok := others[got]; ok {
			t.Errorf("%s has the fingerprint of %s", name, first)
		}
		others[got] = name
	}
	if id(crawl.Request{URL: "http://a.example/", Key: "k"}) != id(crawl.Request{URL: "http://b.example/", Key: "k"}) {
		t.Error("a key is not alone in its fingerprint")
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		"http://example.org/?B=1&A=2", "https://ex.example:443/%7e%2%35?&a&&b=%zz#f", "http://[::1]:80/a/../%2e/",
		"http://u:p@0x7f.1/", `http:\\a\b`, "http:a", "https://xn--bcher-kva.example/ä", "http://a/?%26=%3D&=&%23", "http://a//..//.",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := frontier.Canonical(raw)
		if err != nil {
			var u *frontier.URLError
			if !errors.As(err, &u) {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		again, err := frontier.Canonical(got)
		if err != nil && len(got) <= frontier.MaxURL {
			t.Fatalf("canonical of %q is refused: %v", got, err)
		}
		if err == nil && again != got {
			t.Fatalf("%q: %q, then %q", raw, got, again)
		}
		if u, err := url.Parse(got); err == nil && (u.Host == "" || u.Fragment != "") {
			t.Fatalf("%q has host %q, fragment %q", got, u.Host, u.Fragment)
		}
	})
}
