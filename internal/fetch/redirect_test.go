package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
)

func TestRedirectsAreFollowedAndRecorded(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			http.SetCookie(w, &http.Cookie{Name: "k", Value: "v"})
			http.Redirect(w, r, "/b", http.StatusMovedPermanently)
		case "/b":
			http.Redirect(w, r, "c?x=1#f", http.StatusFound)
		default:
			fmt.Fprint(w, r.Header.Get("Cookie"))
		}
	})
	s := &store{}
	res := do(t, newClient(t), get(srv.URL+"/a", s))
	want(t, res, crawl.OK, "")
	if s.buf.String() != "k=v" {
		t.Errorf("cookies within the exchange: %q", s.buf.String())
	}
	if res.Page.FinalURL != srv.URL+"/c?x=1#f" || res.Outcome.Requests != 3 {
		t.Errorf("final %s after %d requests", res.Page.FinalURL, res.Outcome.Requests)
	}
	wantHops := []crawl.Redirect{{Status: 301, To: srv.URL + "/b"}, {Status: 302, To: srv.URL + "/c?x=1#f"}}
	if fmt.Sprint(res.Page.Redirects) != fmt.Sprint(wantHops) {
		t.Errorf("redirects %v", res.Page.Redirects)
	}
	if s2 := (&store{}); true {
		do(t, newClient(t), get(srv.URL+"/c", s2))
		if s2.buf.String() != "" {
			t.Errorf("a cookie outlived its exchange: %q", s2.buf.String())
		}
	}
}

func TestRedirectsThatEndTheExchange(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/loop": "/loop2", "/loop2": "/loop",
			"/ftp": "ftp://example.com/", "/js": "javascript:alert(1)",
			"/meta": "http://169.254.169.254/latest/", "/azure": "http://168.63.129.16/",
			"/mapped": "http://[::ffff:169.254.169.254]/", "/hex": "http://0xa9fea9fe/",
			"/bad": "http://[::1", "/empty-host": "http:///x", "/long": "/" + strings.Repeat("a", 9000),
		}[r.URL.Path]
		if r.URL.Path == "/chain" {
			var n int
			fmt.Sscanf(r.URL.RawQuery, "%d", &n)
			to = fmt.Sprintf("/chain?%d", n+1)
		}
		if r.URL.Path == "/cookie" {
			if _, err := r.Cookie("seen"); err == nil {
				return
			}
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1"})
			to = "/cookie"
		}
		if to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(http.StatusFound)
	})
	cases := []struct {
		path   string
		class  crawl.Class
		reason crawl.Reason
	}{
		{"/loop", crawl.TargetPermanent, crawl.ReasonRedirectLoop},
		{"/chain", crawl.TargetPermanent, crawl.ReasonTooManyRedirects},
		{"/none", crawl.TargetPermanent, crawl.ReasonBadRedirect},
		{"/bad", crawl.TargetPermanent, crawl.ReasonBadRedirect},
		{"/empty-host", crawl.TargetPermanent, crawl.ReasonBadRedirect},
		{"/long", crawl.TargetPermanent, crawl.ReasonBadRedirect},
		{"/ftp", crawl.Permanent, crawl.ReasonSchemeNotAllowed},
		{"/js", crawl.Permanent, crawl.ReasonSchemeNotAllowed},
		{"/meta", crawl.Permanent, crawl.ReasonAddressNotAllowed},
		{"/azure", crawl.Permanent, crawl.ReasonAddressNotAllowed},
		{"/mapped", crawl.Permanent, crawl.ReasonAddressNotAllowed},
		{"/hex", crawl.Permanent, crawl.ReasonAddressNotAllowed},
		{"/cookie", crawl.OK, ""}, // sets a cookie and sends back: no loop
	}
	c := newClient(t)
	for _, tc := range cases {
		t.Run(tc.path[1:], func(t *testing.T) {
			t.Parallel()
			res := do(t, c, get(srv.URL+tc.path, nil))
			want(t, res, tc.class, tc.reason)
			if tc.path == "/chain" && res.Outcome.Requests != 11 {
				t.Errorf("%d requests, want 11", res.Outcome.Requests)
			}
			if tc.class != crawl.OK && res.Outcome.Status != http.StatusFound {
				t.Errorf("status %d", res.Outcome.Status)
			}
		})
	}
	r := get(srv.URL+"/chain", nil)
	r.Hops = 8 // followed in earlier passes
	if res := do(t, c, r); res.Outcome.Requests != 3 {
		t.Errorf("after 8 hops %d requests, want 3", res.Outcome.Requests)
	}
}

func TestMethodsAreRewrittenAsRFC9110Says(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s", r.Method, b, r.Header.Get("Content-Type"))
			w.Header().Set("X-Method", r.Method)
			return
		}
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.Header().Set("Location", "/end")
		w.WriteHeader(status)
	})
	cases := []struct {
		method string
		status int
		want   string
	}{
		{"POST", 301, "GET  "},
		{"POST", 302, "GET  "},
		{"POST", 303, "GET  "},
		{"POST", 307, "POST x text/plain"},
		{"POST", 308, "POST x text/plain"},
		{"PUT", 301, "PUT x text/plain"},
		{"PUT", 303, "GET  "},
		{"GET", 302, "GET x text/plain"},
	}
	for _, tc := range cases {
		s := &store{}
		r := get(fmt.Sprintf("%s/%d", srv.URL, tc.status), s)
		r.Method, r.Body, r.Header = tc.method, []byte("x"), http.Header{"Content-Type": {"text/plain"}}
		want(t, do(t, newClient(t), r), crawl.OK, "")
		if s.buf.String() != tc.want {
			t.Errorf("%s and %d: got %q, want %q", tc.method, tc.status, s.buf.String(), tc.want)
		}
	}
}

func TestSecretsDoNotCrossOrigins(t *testing.T) {
	t.Parallel()
	var back string
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			http.Redirect(w, r, back+"/again", http.StatusFound)
			return
		}
		fmt.Fprint(w, secrets(r))
	})
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/cross":
			http.Redirect(w, r, other.URL+"/end", http.StatusFound)
		case "/bounce":
			http.Redirect(w, r, other.URL+"/back", http.StatusFound)
		case "/planted":
			http.Redirect(w, r, strings.Replace(other.URL, "http://", "http://evil:pw@", 1)+"/end", http.StatusFound)
		default:
			fmt.Fprint(w, secrets(r))
		}
	})
	back = srv.URL
	for path, wanted := range map[string]string{"/same": "Bearer t|a=1", "/cross": "|", "/bounce": "|", "/planted": "|"} {
		s := &store{}
		r := get(srv.URL+path, s)
		r.Header = http.Header{"Authorization": {"Bearer t"}, "Cookie": {"a=1"}}
		res := do(t, newClient(t), r)
		want(t, res, crawl.OK, "")
		if s.buf.String() != wanted {
			t.Errorf("%s: the last server saw %q, want %q", path, s.buf.String(), wanted)
		}
		if strings.Contains(fmt.Sprint(res.Page), "evil") {
			t.Errorf("credentials of a Location in the record: %v", res.Page)
		}
	}
}

func TestSecretsDoNotGoOnWithALaterPass(t *testing.T) {
	t.Parallel()
	s := &store{}
	r := get(serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, secrets(r)) }).URL, s)
	r.Header = http.Header{"Authorization": {"Bearer t"}, "Cookie": {"a=1"}}
	r.Hops = 1
	want(t, do(t, newClient(t), r), crawl.OK, "")
	if s.buf.String() != "|" {
		t.Errorf("the second host saw %q", s.buf.String())
	}
}

func secrets(r *http.Request) string {
	return r.Header.Get("Authorization") + "|" + r.Header.Get("Cookie")
}

func TestHooksSeeEachHopAndCanEndIt(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { asked <- "other" })
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/two", http.StatusFound)
			return
		}
		http.Redirect(w, r, other.URL+"/x", http.StatusFound)
	})
	stop := &fetch.Stop{Outcome: crawl.Outcome{Class: crawl.Deferred, WaitMS: 9000, Why: crawl.WaitRedirect, NextURL: other.URL + "/x", Hops: 2}}
	broken := errors.New("redis away")
	cases := []struct {
		name  string
		hook  func(r *fetch.Request)
		class crawl.Class
		err   error
		asked int
	}{
		{"OnRedirect defers", func(r *fetch.Request) {
			r.OnRedirect = func(_ ctx, to *url.URL, hops int) error {
				if to.String() != other.URL+"/x" || hops != 2 {
					t.Errorf("asked about %s after %d hops", to, hops)
				}
				return stop
			}
		}, crawl.Deferred, nil, 2},
		{"OnRedirect fails", func(r *fetch.Request) {
			r.OnRedirect = func(ctx, *url.URL, int) error { return broken }
		}, "", broken, 2},
		{"BeforeRequest refuses the first request", func(r *fetch.Request) {
			r.BeforeRequest = func(ctx, *url.URL) error { return stop }
		}, crawl.Deferred, nil, 0},
		{"BeforeRequest refuses the last hop", func(r *fetch.Request) {
			r.BeforeRequest = func(_ ctx, to *url.URL) error {
				if to.Host == hostOf(t, other.URL) {
					return broken
				}
				return nil
			}
		}, "", broken, 2},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := get(srv.URL+"/", nil)
			tc.hook(&r)
			res := newClient(t).Do(t.Context(), r)
			if res.Outcome.Class != tc.class || !errors.Is(res.Err, tc.err) {
				t.Errorf("got %s, %v", res.Outcome.Class, res.Err)
			}
			if len(asked) != tc.asked || res.Outcome.Requests != tc.asked {
				t.Errorf("%d requests arrived and %d are counted, want %d", len(asked), res.Outcome.Requests, tc.asked)
			}
			for len(asked) > 0 {
				<-asked
			}
			if tc.class == crawl.Deferred && (res.Outcome.NextURL != other.URL+"/x" || res.Outcome.WaitMS != 9000) {
				t.Errorf("the hook's outcome came back as %+v", res.Outcome)
			}
		})
	}
}

func TestAnExchangeThatIsCanceledSaysSo(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begin")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the connection is closed by the client
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &store{onWrite: cancel}
	res := newClient(t).Do(ctx, get(srv.URL, s))
	want(t, res, crawl.Canceled, "")
	<-gone
	if s.committed || !s.discarded || res.Err != nil {
		t.Errorf("committed %v, discarded %v, err %v", s.committed, s.discarded, res.Err)
	}
}

func TestCancelWhileTheProxyStallsComesAtOnce(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https", "socks5h"} {
		reached := make(chan struct{})
		p := proxyAt(t, scheme, listen(t, func(c net.Conn) { close(reached); readRequest(c) }))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-reached; cancel() }()
		r := get("https://example.com/", nil)
		r.Proxy = p
		begun := time.Now()
		want(t, newClient(t).Do(ctx, r), crawl.Canceled, "")
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("%s: canceled after %v", scheme, took)
		}
	}
}
