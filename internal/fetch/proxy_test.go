package fetch_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
)

func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<p>hello")
}

func TestAPageComesThroughEachKindOfProxy(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	plain, secure := serve(t, page), serveTLS(t, page)
	proxies := map[string]*crawl.Proxy{
		"http":                startForward(t, &forward{}, "http"),
		"https":               startForward(t, &forward{}, "https"),
		"http with password":  startForward(t, &forward{user: "u", password: "p:w"}, "http"),
		"https with password": startForward(t, &forward{user: "u", password: "p"}, "https"),
		"socks5":              startSocks(t, &socks{}, "socks5"),
		"socks5h":             startSocks(t, &socks{}, "socks5h"),
		"socks5 with password": startSocks(t, &socks{
			user: "u", password: "p",
		}, "socks5"),
		"direct": nil,
	}
	for name, p := range proxies {
		for _, target := range []string{plain.URL, secure.URL} {
			t.Run(name+" to "+target[:5], func(t *testing.T) {
				t.Parallel()
				s := &store{}
				r := get(target+"/a?b=1&A=2", s)
				r.Proxy = p
				res := do(t, c, r)
				want(t, res, crawl.OK, "")
				if s.buf.String() != "<p>hello" || !s.committed {
					t.Errorf("stored %q, committed %v", s.buf.String(), s.committed)
				}
				o := res.Outcome
				if p != nil && (o.Proxy != "p1" || o.Region != "de") {
					t.Errorf("proxy %q in %q", o.Proxy, o.Region)
				}
				if o.Requests != 1 || o.ConnectMS < 1 || o.Bytes != 8 || o.WireBytes != 8 || o.StartedMS == 0 {
					t.Errorf("outcome %+v", o)
				}
			})
		}
	}
}

func TestNothingFallsBackToADirectConnection(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	srv := serve(t, func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })
	for _, scheme := range []string{"http", "https", "socks5", "socks5h"} {
		r := get(srv.URL, nil)
		r.Proxy = proxyAt(t, scheme, refusedAddr(t))
		want(t, do(t, newClient(t), r), crawl.ProxyFault, crawl.ReasonConnectRefused)
	}
	if len(asked) > 0 {
		t.Error("the target was asked although every proxy refused")
	}
}

func TestAProxyPaysForWhatFailsBeforeTheTunnelStands(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	secure := serveTLS(t, page)
	say := func(text string) func(net.Conn) { return func(c net.Conn) { fmt.Fprint(c, text) } }
	silent := func(c net.Conn) { readRequest(c) }
	cases := []struct {
		name   string
		proxy  *crawl.Proxy
		class  crawl.Class
		reason crawl.Reason
	}{
		{"CONNECT answered 503", startForward(t, &forward{connect: say("HTTP/1.1 503 Busy\r\n\r\n")}, "http"), crawl.ProxyFault, crawl.ReasonProxyStatus},
		{"CONNECT answered 502 by an https proxy", startForward(t, &forward{connect: say("HTTP/1.1 502 x\r\n\r\n")}, "https"), crawl.ProxyFault, crawl.ReasonProxyStatus},
		{"CONNECT answered 405", startForward(t, &forward{connect: say("HTTP/1.1 405 x\r\n\r\n")}, "http"), crawl.ProxyFault, crawl.ReasonProxyProtocol},
		{"CONNECT answered with garbage", startForward(t, &forward{connect: say("hello\r\n\r\n")}, "http"), crawl.ProxyFault, crawl.ReasonProxyProtocol},
		{"CONNECT cut", startForward(t, &forward{connect: func(net.Conn) {}}, "http"), crawl.ProxyFault, crawl.ReasonConnectReset},
		{"CONNECT not answered", startForward(t, &forward{connect: silent}, "http"), crawl.ProxyFault, crawl.ReasonConnectTimeout},
		{"CONNECT answered 407", startForward(t, &forward{connect: say("HTTP/1.1 407 x\r\n\r\n")}, "http"), crawl.ProxyAuth, crawl.ReasonProxyAuth},
		{"no TLS on an https proxy", proxyAt(t, "https", listen(t, say("220 mail\r\n"))), crawl.ProxyFault, crawl.ReasonTLS},
		{"an https proxy that stalls in TLS", proxyAt(t, "https", listen(t, silent)), crawl.ProxyFault, crawl.ReasonConnectTimeout},
		{"SOCKS that wants a password", startless(startSocks(t, &socks{user: "u", password: "p"}, "socks5h")), crawl.ProxyAuth, crawl.ReasonProxyAuth},
		{"SOCKS with a wrong password", wrong(startSocks(t, &socks{user: "u", password: "p"}, "socks5h")), crawl.ProxyAuth, crawl.ReasonProxyAuth},
		{"SOCKS general failure", startSocks(t, &socks{reply: 1}, "socks5h"), crawl.ProxyFault, crawl.ReasonProxyStatus},
		{"SOCKS refusal by its rules", startSocks(t, &socks{reply: 2}, "socks5h"), crawl.ProxyFault, crawl.ReasonProxyProtocol},
		{"SOCKS says host unreachable", startSocks(t, &socks{reply: 4}, "socks5h"), crawl.Ambiguous, crawl.ReasonConnectTimeout},
		{"SOCKS says target refused", startSocks(t, &socks{reply: 5}, "socks5h"), crawl.Ambiguous, crawl.ReasonConnectRefused},
		{"SOCKS that speaks HTTP", proxyAt(t, "socks5h", listen(t, say("HTTP/1.1 400 no\r\n\r\n"))), crawl.ProxyFault, crawl.ReasonProxyProtocol},
		{"SOCKS that hangs up", proxyAt(t, "socks5", listen(t, func(net.Conn) {})), crawl.ProxyFault, crawl.ReasonConnectReset},
		{"SOCKS that is silent", proxyAt(t, "socks5", listen(t, silent)), crawl.ProxyFault, crawl.ReasonConnectTimeout},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := get(secure.URL, nil)
			r.Proxy = tc.proxy
			r.Limits.Connect = 3 * time.Second
			if tc.reason == crawl.ReasonConnectTimeout && tc.class == crawl.ProxyFault {
				r.Limits.Connect = 200 * time.Millisecond
			}
			res := do(t, c, r)
			want(t, res, tc.class, tc.reason)
			if res.Outcome.Requests != 0 {
				t.Errorf("%d requests counted, none can have been sent", res.Outcome.Requests)
			}
		})
	}
}

func wrong(p *crawl.Proxy) *crawl.Proxy { p.Password = "wrong"; return p }

func startless(p *crawl.Proxy) *crawl.Proxy { p.Username, p.Password = "", ""; return p }

func TestAfterTheTunnelStandsNobodyIsBlamedAlone(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ok := "HTTP/1.1 200 OK\r\n\r\n"
	cases := []struct {
		name   string
		after  func(net.Conn)
		reason crawl.Reason
	}{
		{"the tunnel hangs up in the TLS handshake", func(c net.Conn) { buf := make([]byte, 1); _, _ = c.Read(buf) }, crawl.ReasonReset},
		{"the tunnel answers without TLS", func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1)) // the hello has begun
			fmt.Fprint(c, "HTTP/1.1 400 Bad\r\n\r\n")
			readRequest(c)
		}, crawl.ReasonTLS},
		{"the tunnel is silent", func(c net.Conn) { readRequest(c) }, crawl.ReasonTimeout},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := get("https://example.com/", nil)
			r.Proxy = startForward(t, &forward{connect: func(c net.Conn) { fmt.Fprint(c, ok); tc.after(c) }}, "http")
			r.Limits.Connect = 300 * time.Millisecond
			want(t, do(t, c, r), crawl.Ambiguous, tc.reason)
		})
	}
}

func TestPlainHTTPThroughAProxyTells407FromTheTargetsAnswers(t *testing.T) {
	t.Parallel()
	srv := serve(t, page)
	f := &forward{user: "u", password: "p"}
	r := get(srv.URL, nil)
	r.Proxy = wrong(startForward(t, f, "http"))
	want(t, do(t, newClient(t), r), crawl.ProxyAuth, crawl.ReasonProxyAuth)

	r.Proxy = startForward(t, &forward{status: 503}, "http")
	want(t, do(t, newClient(t), r), crawl.TargetTransient, "http_503")
}

func TestAUserNameIsDecodedOnTheWire(t *testing.T) {
	t.Parallel()
	// The importer decodes "foo%40bar"; the proxy must see user foo@bar.
	f := &forward{user: "foo@bar", password: "s"}
	for _, target := range []string{serve(t, page).URL, serveTLS(t, page).URL} {
		r := get(target, nil)
		r.Proxy = startForward(t, f, "http")
		want(t, do(t, newClient(t), r), crawl.OK, "")
		_, _, auths := f.seen()
		if got := auths[len(auths)-1]; got != "Basic "+base64.StdEncoding.EncodeToString([]byte("foo@bar:s")) {
			t.Errorf("Proxy-Authorization %q", got)
		}
	}
}

func TestTenGetsOverTwoProxiesMakeFiveConnectsEach(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	srv := serveTLS(t, page)
	f := []*forward{{}, {}}
	p := []*crawl.Proxy{startForward(t, f[0], "http"), startForward(t, f[1], "http")}
	for i := range 10 {
		r := get(srv.URL, nil)
		r.Proxy = p[i%2]
		want(t, do(t, c, r), crawl.OK, "")
	}
	for i := range f {
		if connects, _, _ := f[i].seen(); len(connects) != 5 {
			t.Errorf("proxy %d saw %d CONNECTs, want 5", i, len(connects))
		}
	}
}

func TestNamesAreResolvedHereUnderSocks5AndByTheProxyUnderSocks5h(t *testing.T) {
	t.Parallel()
	srv := serve(t, page)
	here, there := &socks{}, &socks{to: hostOf(t, srv.URL)}
	r := get("http://localhost:"+port(srv.URL), nil)
	r.Proxy = startSocks(t, here, "socks5")
	want(t, do(t, newClient(t), r), crawl.OK, "")
	if got := here.hosts()[0]; strings.HasPrefix(got, "localhost") {
		t.Errorf("the socks5 proxy was given the name: %s", got)
	}
	r = get("http://no-such-name.example/", nil)
	r.AllowPrivate = false
	r.Proxy = startSocks(t, there, "socks5h")
	want(t, do(t, newClient(t), r), crawl.OK, "")
	if got := there.hosts()[0]; got != "no-such-name.example:80" {
		t.Errorf("the socks5h proxy was asked for %s", got)
	}
}

func TestNoPasswordOrForeignTextLeavesThePackage(t *testing.T) {
	t.Parallel()
	const canary = "s3cr3t-canary"
	hostile := "HTTP/1.1 407 \x1b[31mpwned " + canary + "\r\n\r\n"
	f := &forward{connect: func(c net.Conn) { fmt.Fprint(c, hostile) }}
	refuse := &forward{connect: func(c net.Conn) { fmt.Fprint(c, strings.Replace(hostile, "407", "599", 1)) }}
	for _, p := range []*crawl.Proxy{
		startForward(t, f, "http"), startForward(t, refuse, "http"), proxyAt(t, "http", refusedAddr(t)),
		proxyAt(t, "socks5", refusedAddr(t)), startSocks(t, &socks{user: "x", password: "y"}, "socks5h"),
	} {
		p.Username, p.Password = "user-"+canary, canary
		r := get("https://someone:"+canary+"@example.com/?q=1", nil)
		r.Proxy = p
		res := newClient(t).Do(t.Context(), r)
		text, err := json.Marshal(res.Outcome)
		if err != nil {
			t.Fatal(err)
		}
		more, _ := json.Marshal(res.Page)
		all := fmt.Sprintf("%s %s %v %+v", text, more, res.Err, res)
		if strings.Contains(all, canary) || strings.Contains(all, "\x1b") || strings.Contains(all, "pwned") {
			t.Errorf("leaked: %q", all)
		}
		if res.Outcome.Reason == "" {
			t.Error("no reason")
		}
	}
}

func TestProxyCredentialsNeverReachTheTarget(t *testing.T) {
	t.Parallel()
	var got http.Header
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	f := &forward{user: "u", password: "p"}
	r := get(srv.URL, nil)
	r.Header = http.Header{"Proxy-Authorization": {"Basic x"}, "X-Own": {"1"}, "Connection": {"x-own"}}
	r.Proxy = startSocks(t, &socks{}, "socks5")
	want(t, do(t, newClient(t), r), crawl.OK, "")
	r.Proxy = startForward(t, f, "http")
	want(t, do(t, newClient(t), r), crawl.OK, "")
	if got.Get("Proxy-Authorization") != "" || got.Get("X-Own") != "1" {
		t.Errorf("target saw %v", got)
	}
}
