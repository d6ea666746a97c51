package fetch_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
)

func TestTheGuardRefusesByWhatTheURLSays(t *testing.T) {
	t.Parallel()
	const no, ok, scheme, invalid = crawl.ReasonAddressNotAllowed, crawl.Reason(""), crawl.ReasonSchemeNotAllowed, crawl.ReasonInvalidURL
	cases := []struct {
		url                string
		open, allowPrivate crawl.Reason
	}{
		{"http://example.org/", ok, ok},
		{"https://EXAMPLE.org:8443/x", ok, ok},
		{"http://93.184.216.34/", ok, ok},
		{"http://[2606:2800:220:1::1]/", ok, ok},
		{"http://bücher.example/", ok, ok},
		{"http://127.0.0.1/", no, ok},
		{"http://127.1:8080/", no, ok},
		{"http://0x7f000001/", no, ok},
		{"http://0177.0.0.1/", no, ok},
		{"http://2130706433/", no, ok},
		{"http://127。0。0。1/", no, ok},
		{"http://127.0.0.1./", no, ok},
		{"http://[::1]/", no, ok},
		{"http://[::ffff:127.0.0.1]/", no, ok},
		{"http://[::ffff:7f00:1]/", no, ok},
		{"http://localhost/", no, ok},
		{"http://LOCALHOST./", no, ok},
		{"http://a.localhost/", no, ok},
		{"http://db.internal/", no, ok},
		{"http://printer.local/", no, ok},
		{"http://router.home.arpa/", no, ok},
		{"http://10.1.2.3/", no, ok},
		{"http://172.16.0.1/", no, ok},
		{"http://192.168.1.1/", no, ok},
		{"http://100.64.0.1/", no, ok},
		{"http://198.18.0.1/", no, ok},
		{"http://[fd12::1]/", no, ok},
		{"http://0.0.0.0/", no, no},
		{"http://0/", no, no},
		{"http://169.254.169.254/", no, no},
		{"http://168.63.129.16/", no, no},
		{"http://100.100.100.200/", no, no},
		{"http://[fd00:ec2::254]/", no, no},
		{"http://[fe80::1]/", no, no},
		{"http://[64:ff9b::7f00:1]/", no, no},
		{"http://[2002:7f00:1::]/", no, no},
		{"http://[2001::1]/", no, no},
		{"http://[::]/", no, no},
		{"http://224.0.0.1/", no, no},
		{"http://255.255.255.255/", no, no},
		{"http://metadata.google.internal/", no, no},
		{"http://metadata/", no, no},
		{"ftp://example.org/", scheme, scheme},
		{"file:///etc/passwd", scheme, scheme},
		{"gopher://example.org/", scheme, scheme},
		{"//example.org/", scheme, scheme},
		{"example.org", scheme, scheme},
		{"http:///x", invalid, invalid},
		{"http://", invalid, invalid},
		{"http://1.2.3.4.5/", invalid, invalid},
		{"http://256.1.1.1/", invalid, invalid},
		{"http://a b/", invalid, invalid},
		{"http://[::1", invalid, invalid},
		{"http://[fe80::1%25eth0]/", invalid, invalid},
		{"http:example.org", invalid, invalid},
		{"http://exa%00mple.org/", invalid, invalid},
		{"http://" + strings.Repeat("a", 9000), invalid, invalid},
	}
	c := newClient(t)
	for _, tc := range cases {
		if host, got := c.CheckURL(tc.url, false); got != tc.open {
			t.Errorf("%.60s: %q (host %s), want %q", tc.url, got, host, tc.open)
		}
		if host, got := c.CheckURL(tc.url, true); got != tc.allowPrivate {
			t.Errorf("%.60s with private allowed: %q (host %s), want %q", tc.url, got, host, tc.allowPrivate)
		}
	}
}

func TestARefusedURLIsAskedOfNobody(t *testing.T) {
	t.Parallel()
	srv := serve(t, page)
	f := &forward{}
	r := get(strings.Replace(srv.URL, "127.0.0.1", "0x7f000001", 1), nil)
	r.AllowPrivate = false
	for _, p := range []*crawl.Proxy{nil, startForward(t, f, "http")} {
		r.Proxy = p
		res := do(t, newClient(t), r)
		want(t, res, crawl.Permanent, crawl.ReasonAddressNotAllowed)
	}
	if connects, plain, _ := f.seen(); len(connects)+len(plain) > 0 {
		t.Errorf("the proxy was asked: %v %v", connects, plain)
	}
	r.AllowPrivate, r.Proxy = true, nil
	want(t, do(t, newClient(t), r), crawl.OK, "")
}

func TestANameIsJudgedByTheAddressItResolvesTo(t *testing.T) {
	t.Parallel()
	srv := serve(t, page)
	c := fetch.New(fetch.Options{Resolver: dns(t, "rebind.example.", netip.MustParseAddr("127.0.0.1"))})
	r := get("http://rebind.example:"+port(srv.URL)+"/", nil)
	want(t, do(t, c, r), crawl.OK, "") // private allowed: the server is real

	r.AllowPrivate = false
	want(t, do(t, c, r), crawl.Permanent, crawl.ReasonAddressNotAllowed)
	s := &socks{}
	r.Proxy = startSocks(t, s, "socks5")
	want(t, do(t, c, r), crawl.Permanent, crawl.ReasonAddressNotAllowed)
	if len(s.hosts()) > 0 {
		t.Errorf("the proxy was asked for %v", s.hosts())
	}
}

func TestAHostThatDoesNotExistEndsAtOnce(t *testing.T) {
	t.Parallel()
	c := fetch.New(fetch.Options{Resolver: dns(t, "there.example.", netip.MustParseAddr("127.0.0.1"))})
	r := get("http://nowhere.example/", nil)
	want(t, do(t, c, r), crawl.Permanent, crawl.ReasonNoSuchHost)
	r.Proxy = startSocks(t, &socks{}, "socks5")
	want(t, do(t, c, r), crawl.Permanent, crawl.ReasonNoSuchHost)

	// A proxy whose name does not exist is the proxy's fault, not the URL's.
	r = get(serve(t, page).URL, nil)
	r.Proxy = proxyAt(t, "http", "nowhere.example:3128")
	want(t, do(t, c, r), crawl.ProxyFault, crawl.ReasonDNS)

	// A name server that fails says nothing about the host.
	r = get("http://servfail.example/", nil)
	want(t, do(t, c, r), crawl.Ambiguous, crawl.ReasonDNS)
}

// dns returns a resolver of a name server on loopback that knows one name; under
// servfail.example it fails.
func dns(t testing.TB, name string, addr netip.Addr) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var q dnsmessage.Message
			if q.Unpack(buf[:n]) != nil || len(q.Questions) == 0 {
				continue
			}
			q.Response, q.Additionals = true, nil
			switch asked := q.Questions[0].Name.String(); {
			case strings.HasPrefix(asked, "servfail.example"):
				q.RCode = dnsmessage.RCodeServerFailure
			case asked != name:
				q.RCode = dnsmessage.RCodeNameError
			case q.Questions[0].Type == dnsmessage.TypeA:
				q.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.AResource{A: addr.As4()},
				}}
			}
			if out, err := q.Pack(); err == nil {
				_, _ = pc.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { pc.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func TestURLsAreAskedAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.RequestURI })
	for in, out := range map[string]string{
		"/?B=1&A=2":           "/?B=1&A=2",
		"/%7Efoo/%2f;x=1":     "/%7Efoo/%2f;x=1",
		"/a b?c d":            "/a%20b?c%20d",
		"/ä?ö":                "/%C3%A4?%C3%B6",
		"/100%?q=5%":          "/100%25?q=5%",
		"/a//b/../c?x=%zz#ab": "/a//b/../c?x=%zz",
		"":                    "/",
	} {
		want(t, do(t, newClient(t), get(srv.URL+in, nil)), crawl.OK, "")
		if got := <-asked; got != out {
			t.Errorf("%q was asked as %q, want %q", in, got, out)
		}
	}
}
