package lab_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/lab"
)

func TestAGoodProxyCarriesWhateverTheSiteDoes(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]lab.ProxyOptions{
		"http":                 {Name: "p"},
		"http with password":   {Name: "p", Username: "u@x", Password: "p:w/ü"},
		"https":                {Name: "p", TLS: true, Username: "u", Password: "p"},
		"socks5":               {Name: "p", SOCKS: true},
		"socks5 with password": {Name: "p", SOCKS: true, Username: "u", Password: "p"},
		"slow":                 {Name: "p", Behaviour: lab.Slow, Delay: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := proxy(t, o), site(t, lab.SiteOptions{})
			c := client(t, p.URL(), p.CertPool())
			if g := get(t, c, s.URL("/ok/1")); g.status != 200 || !bytes.Equal(g.body, lab.PageOf("1")) {
				t.Errorf("ok: %d, %v", g.status, g.err)
			}
			if g := get(t, c, s.URL("/gzip/1")); !bytes.Equal(g.body, lab.PageOf("1")) {
				t.Errorf("gzip (chunked): %d bytes, %v", len(g.body), g.err)
			}
			if g := get(t, c, s.URL("/redirect/1")); g.status != 301 || g.header.Get("Location") != "/redirect/1/2" {
				t.Errorf("redirect: %d", g.status)
			}
			if g := get(t, c, s.URL("/throttled/1?after=3")); g.status != 429 || g.header.Get("Retry-After") != "3" {
				t.Errorf("throttled: %d", g.status)
			}
			if g := get(t, c, s.URL("/truncated/1")); !truncated(g.err) {
				t.Errorf("truncated: %v", g.err)
			}
			if g := get(t, c, s.URL("/oversize/1")); len(g.body) != 4<<20 {
				t.Errorf("oversize: %d bytes, %v", len(g.body), g.err)
			}
			if st := p.Stats(); st.Requests+st.Connects != 6 || st.Denied != 0 || o.SOCKS != (st.Connects == 6) {
				t.Errorf("stats %+v", st)
			}
			if by := s.Visits()[0].Proxy; o.SOCKS != (by == "") || !o.SOCKS && by != "p" {
				t.Errorf("the site saw proxy %q", by)
			}
		})
	}
}

func TestATunnelCarriesTLS(t *testing.T) {
	t.Parallel()
	s := site(t, lab.SiteOptions{TLS: true})
	for _, o := range []lab.ProxyOptions{{Username: "u", Password: "p"}, {SOCKS: true}} {
		p := proxy(t, o)
		c := client(t, p.URL(), s.CertPool())
		for range 3 {
			if g := get(t, c, s.URL("/ok/1")); g.status != 200 || !bytes.Equal(g.body, lab.PageOf("1")) {
				t.Errorf("%d, %v", g.status, g.err)
			}
		}
		if st := p.Stats(); st.Connects != 3 || st.Requests != 0 {
			t.Errorf("stats %+v", st)
		}
	}
}

func TestAProxyTakesOnlyTheRightPassword(t *testing.T) {
	t.Parallel()
	s := site(t, lab.SiteOptions{})
	for _, socks := range []bool{false, true} {
		p := proxy(t, lab.ProxyOptions{SOCKS: socks, Username: "u", Password: "right", ListPassword: "stale"})
		if line := p.ListLine(); !strings.Contains(line, "u:stale@"+p.Addr()) || strings.Contains(line, "right") {
			t.Errorf("line %s", line)
		}
		open := p.URL()
		open.User = nil
		for _, via := range []*url.URL{p.URL(), open} {
			g := get(t, client(t, via, nil), s.URL("/ok/1"))
			if socks && g.err == nil || !socks && g.status != http.StatusProxyAuthRequired {
				t.Errorf("socks %v: %d, %v", socks, g.status, g.err)
			}
		}
		if st := p.Stats(); st.Denied != 2 || st.Requests+st.Connects != 0 {
			t.Errorf("stats %+v", st)
		}
	}
	if s.Total() != 0 {
		t.Error("a denied request reached the site")
	}
}

func TestARefusingProxyIsNotThereAndItsPortStaysTaken(t *testing.T) {
	t.Parallel()
	p := proxy(t, lab.ProxyOptions{Behaviour: lab.Refuse})
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		_ = c.Close()
		t.Error("somebody listens")
	} else if !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	if ln, err := net.Listen("tcp", p.Addr()); err == nil {
		_ = ln.Close()
		t.Error("another could listen there")
	}
}

func TestAnIllProxyBreaksWhatItCarries(t *testing.T) {
	t.Parallel()
	plain, secure := site(t, lab.SiteOptions{}), site(t, lab.SiteOptions{TLS: true})
	for _, socks := range []bool{false, true} {
		p := proxy(t, lab.ProxyOptions{SOCKS: socks, Behaviour: lab.DieMidBody, DieAfter: 3000})
		g := get(t, client(t, p.URL(), nil), plain.URL("/ok/1"))
		if g.status != 200 || g.err == nil || len(g.body) == 0 || len(g.body) > 3000 {
			t.Errorf("dies (socks %v): %d, %d bytes, %v", socks, g.status, len(g.body), g.err)
		}
		if g := get(t, client(t, p.URL(), secure.CertPool()), secure.URL("/ok/1")); g.err == nil {
			t.Errorf("dies under TLS (socks %v): no error", socks)
		}
	}
	chunked := proxy(t, lab.ProxyOptions{Behaviour: lab.DieMidBody, DieAfter: 10})
	if g := get(t, client(t, chunked.URL(), nil), plain.URL("/gzip/1")); g.err == nil {
		t.Error("a chunked body that broke off was taken for whole")
	}

	p := proxy(t, lab.ProxyOptions{Behaviour: lab.Unavailable})
	if g := get(t, client(t, p.URL(), nil), plain.URL("/ok/1")); g.status != 503 {
		t.Errorf("503: %d, %v", g.status, g.err)
	}
	if g := get(t, client(t, p.URL(), secure.CertPool()), secure.URL("/ok/1")); g.err == nil || p.Stats().Connects != 1 {
		t.Errorf("503 to CONNECT: %v, %+v", g.err, p.Stats())
	}
	p = proxy(t, lab.ProxyOptions{SOCKS: true, Behaviour: lab.Unavailable})
	if g := get(t, client(t, p.URL(), nil), plain.URL("/ok/1")); g.err == nil {
		t.Error("socks failure: no error")
	}
}

func TestAStallingProxyAnswersNothingUntilItsClientGoes(t *testing.T) {
	t.Parallel()
	s := site(t, lab.SiteOptions{TLS: true})
	for _, socks := range []bool{false, true} {
		p := proxy(t, lab.ProxyOptions{SOCKS: socks, Behaviour: lab.Stall})
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL("/ok/1"), nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		c := client(t, p.URL(), s.CertPool())
		go func() {
			resp, err := c.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			done <- err
		}()
		eventually(t, "the tunnel asked for", func() bool { return p.Stats().Connects == 1 })
		cancel()
		if err := <-done; err == nil {
			t.Error("answered")
		}
		if s.Total() != 0 {
			t.Error("the site was reached")
		}
	}
}

func TestAProxyCountsHowManyUseItAtATime(t *testing.T) {
	t.Parallel()
	p, s := proxy(t, lab.ProxyOptions{}), site(t, lab.SiteOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	c := client(t, p.URL(), nil)
	for range 3 {
		wg.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL("/stall/1"), nil)
			if resp, err := c.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	eventually(t, "three at the site", func() bool { return s.Total() == 3 })
	if st := p.Stats(); st.Active != 3 || st.MaxActive != 3 {
		t.Errorf("stats %+v", st)
	}
	cancel()
	wg.Wait()
	// The proxy notices that its clients left, though the site never answered.
	eventually(t, "nobody", func() bool { return p.Stats().Active == 0 })
	get(t, c, s.URL("/ok/1"))
	if st := p.Stats(); st.MaxActive != 3 || st.Requests != 4 {
		t.Errorf("stats %+v", st)
	}
}

func TestCloseBreaksATunnel(t *testing.T) {
	t.Parallel()
	s := site(t, lab.SiteOptions{TLS: true})
	p, err := lab.NewProxy(lab.ProxyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan got)
	c := client(t, p.URL(), s.CertPool())
	go func() { done <- get(t, c, s.URL("/stall/1")) }()
	eventually(t, "the request", func() bool { return s.Total() == 1 })
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if g := <-done; g.err == nil {
		t.Error("answered")
	}
}

func TestAProxyKeepsToLoopbackAndPassesNoCredentialsOn(t *testing.T) {
	t.Parallel()
	for _, socks := range []bool{false, true} {
		p := proxy(t, lab.ProxyOptions{SOCKS: socks, Username: "u", Password: "canary"})
		c := client(t, p.URL(), nil)
		for _, far := range []string{"http://192.0.2.1/", "http://example.test/", "http://10.0.0.1:1/"} {
			g := get(t, c, far)
			if !socks && g.status != http.StatusForbidden || socks && g.err == nil {
				t.Errorf("%s (socks %v): %d, %v", far, socks, g.status, g.err)
			}
		}
		s := site(t, lab.SiteOptions{})
		if g := get(t, c, s.URL("/echo")); bytes.Contains(g.body, []byte("Proxy-Auth")) || g.status != 200 {
			t.Errorf("the site was told %s", g.body)
		}
	}
}

func TestAProxyCarriesARequestsBody(t *testing.T) {
	t.Parallel()
	target := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = target.Serve(ln) })
	t.Cleanup(func() { _ = target.Close(); wg.Wait() })
	p := proxy(t, lab.ProxyOptions{})
	resp, err := client(t, p.URL(), nil).Post("http://"+ln.Addr().String()+"/", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if b, _ := io.ReadAll(resp.Body); string(b) != "hello" {
		t.Errorf("%q", b)
	}
}
