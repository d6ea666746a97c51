package lab_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/lab"
)

func TestPagesAreLargeStableAndDistinct(t *testing.T) {
	t.Parallel()
	a, again, b := lab.PageOf("1"), lab.PageOf("1"), lab.PageOf("2")
	if !bytes.Equal(a, again) || bytes.Equal(a, b) || len(a) < lab.PageSize || len(a) > lab.PageSize+1024 {
		t.Errorf("%d and %d bytes", len(a), len(b))
	}
	if bytes.Contains(lab.PageOf("<script>"), []byte("<script>")) {
		t.Error("a page's name is not escaped")
	}
}

func TestTheSiteAnswersAsItsPathsSay(t *testing.T) {
	t.Parallel()
	type want struct {
		status int
		body   []byte
		header string // "Name: value"
		broken func(error) bool
	}
	any := func(err error) bool { return err != nil }
	for path, seq := range map[string][]want{
		"/ok/7":                      {{status: 200, body: lab.PageOf("7"), header: "Content-Type: text/html; charset=utf-8"}},
		"/gzip/7":                    {{status: 200, body: lab.PageOf("7")}},
		"/missing/1":                 {{status: 404}},
		"/forbidden/1":               {{status: 403}},
		"/status/451":                {{status: 451}},
		"/status/9":                  {{status: 400}},
		"/throttled/1?after=7":       {{status: 429, header: "Retry-After: 7"}, {status: 200, body: lab.PageOf("1")}},
		"/flaky/1":                   {{status: 503}, {status: 503}, {status: 200, body: lab.PageOf("1")}},
		"/flaky/2?times=1":           {{status: 503}, {status: 200}},
		"/redirect/5":                {{status: 301, header: "Location: /redirect/5/2"}},
		"/redirect/5/2":              {{status: 302, header: "Location: /redirect/5/3"}},
		"/redirect/5/3":              {{status: 307, header: "Location: /ok/5"}},
		"/loop":                      {{status: 302, header: "Location: /loop/back"}},
		"/loop/back":                 {{status: 302, header: "Location: /loop"}},
		"/truncated/1":               {{status: 200, broken: truncated, header: "Content-Length: 1000"}, {status: 200, body: lab.PageOf("1")}},
		"/truncated/2?times=forever": {{status: 200, broken: truncated}, {status: 200, broken: truncated}, {status: 200, broken: truncated}},
		"/reset/1":                   {{broken: any}, {status: 200}},
		"/slow/1?ms=1":               {{status: 200, body: lab.PageOf("1")}},
		"/robots.txt":                {{status: 404}},
		"/files/index.html":          {{status: 404}},
		"/nowhere":                   {{status: 404}},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := site(t, lab.SiteOptions{})
			c := client(t, nil, nil)
			for i, w := range seq {
				g := get(t, c, s.URL(path))
				if g.status != w.status {
					t.Errorf("request %d: status %d, %v", i+1, g.status, g.err)
				}
				if w.broken == nil && g.err != nil || w.broken != nil && !w.broken(g.err) {
					t.Errorf("request %d: error %v", i+1, g.err)
				}
				if w.body != nil && !bytes.Equal(g.body, w.body) {
					t.Errorf("request %d: %d bytes of another body", i+1, len(g.body))
				}
				if name, value, ok := strings.Cut(w.header, ": "); ok && g.header.Get(name) != value {
					t.Errorf("request %d: %s is %q", i+1, name, g.header.Get(name))
				}
			}
			if n := s.Count(path); n != len(seq) {
				t.Errorf("the log has %d visits", n)
			}
		})
	}
}

func TestTheLogKeepsTheNewestAndTheirStatus(t *testing.T) {
	t.Parallel()
	s := site(t, lab.SiteOptions{MaxLog: 3})
	c := client(t, nil, nil)
	for _, p := range []string{"/ok/1", "/ok/2", "/missing/3", "/forbidden/4", "/ok/5?x=y"} {
		get(t, c, s.URL(p))
	}
	var seen []string
	for _, v := range s.Visits() {
		seen = append(seen, v.Path)
		if v.At.IsZero() || v.Peer == "" || v.Method != "GET" || v.Host != s.Addr() {
			t.Errorf("visit %+v", v)
		}
	}
	if want := []string{"/missing/3", "/forbidden/4", "/ok/5?x=y"}; !slices.Equal(seen, want) {
		t.Errorf("log %v", seen)
	}
	if v := s.Visits(); v[0].Status != 404 || v[1].Status != 403 || v[2].Status != 200 {
		t.Errorf("log %+v", v)
	}
	if s.Total() != 5 {
		t.Errorf("total %d", s.Total())
	}
}

// handClock is a clock that is set by hand.
type handClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *handClock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
func (c *handClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestAThrottledSiteClosesOnceAndCountsWhoComesEarly(t *testing.T) {
	t.Parallel()
	clock := &handClock{at: time.Unix(1_000_000, 0)}
	s := site(t, lab.SiteOptions{Throttle: lab.Throttle{From: 3, For: 5 * time.Second}, Now: clock.now})
	c := client(t, nil, nil)
	ask := func(status int, after string) {
		t.Helper()
		if g := get(t, c, s.URL("/ok/1")); g.status != status || g.header.Get("Retry-After") != after {
			t.Errorf("status %d, Retry-After %q", g.status, g.header.Get("Retry-After"))
		}
	}
	ask(200, "")
	ask(200, "")
	ask(429, "5") // it closes
	if s.Early() != 0 {
		t.Error("the request that met the closing door came early")
	}
	clock.add(3500 * time.Millisecond)
	ask(429, "2")
	if s.Early() != 1 || !s.Visits()[3].Early {
		t.Errorf("%d early", s.Early())
	}
	clock.add(1500 * time.Millisecond)
	ask(200, "")
	ask(200, "")
	if s.Early() != 1 {
		t.Errorf("%d early in the end", s.Early())
	}
}

func TestAThrottledPageCountsWhoComesEarly(t *testing.T) {
	t.Parallel()
	clock := &handClock{at: time.Unix(1_000_000, 0)}
	s := site(t, lab.SiteOptions{Now: clock.now})
	c := client(t, nil, nil)
	get(t, c, s.URL("/throttled/1?after=2"))
	clock.add(time.Second)
	get(t, c, s.URL("/throttled/1?after=2"))
	clock.add(time.Second)
	get(t, c, s.URL("/throttled/1?after=2"))
	if s.Early() != 1 {
		t.Errorf("%d early", s.Early())
	}
}

func TestAnOversizeBodyStreamsUntilTheClientHasEnough(t *testing.T) {
	t.Parallel()
	s := site(t, lab.SiteOptions{})
	if g := get(t, client(t, nil, nil), s.URL("/oversize/1")); len(g.body) != 4<<20 {
		t.Errorf("%d bytes, %v", len(g.body), g.err)
	}
}

func TestRobotsIsServedAsTold(t *testing.T) {
	t.Parallel()
	c := client(t, nil, nil)
	s := site(t, lab.SiteOptions{Robots: "User-agent: *\nDisallow: /ok/\n"})
	if g := get(t, c, s.URL("/robots.txt")); g.status != 200 || !strings.Contains(string(g.body), "Disallow: /ok/") {
		t.Errorf("%d %q", g.status, g.body)
	}
	s = site(t, lab.SiteOptions{RobotsStatus: 503})
	if g := get(t, c, s.URL("/robots.txt")); g.status != 503 {
		t.Errorf("%d", g.status)
	}
}

func TestCloseEndsWhatWaits(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/stall/1", "/slow/1?ms=3600000", "/drip/1?ms=3600000"} {
		s, err := lab.NewSite(lab.SiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan got)
		c := client(t, nil, nil)
		go func() { done <- get(t, c, s.URL(path)) }()
		eventually(t, "the request", func() bool { return s.Total() == 1 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if g := <-done; g.err == nil {
			t.Errorf("%s was answered whole", path)
		}
	}
}

func TestAStalledHandlerEndsWithItsClient(t *testing.T) {
	t.Parallel()
	s := site(t, lab.SiteOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL("/stall/1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	c := client(t, nil, nil)
	go func() {
		resp, err := c.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	eventually(t, "the request", func() bool { return s.Total() == 1 })
	cancel()
	if err := <-done; err == nil {
		t.Error("answered")
	}
}

func TestASiteSpeaksTLS(t *testing.T) {
	t.Parallel()
	s := site(t, lab.SiteOptions{TLS: true})
	c := client(t, nil, s.CertPool())
	if g := get(t, c, s.URL("/ok/1")); g.status != 200 || !strings.HasPrefix(s.URL(""), "https://") {
		t.Errorf("%d, %v", g.status, g.err)
	}
	if g := get(t, c, s.URL("/truncated/1")); !truncated(g.err) {
		t.Errorf("truncated: %v", g.err)
	}
	if g := get(t, c, s.URL("/reset/1")); g.err == nil {
		t.Error("reset: no error")
	}
	if g := get(t, client(t, nil, nil), s.URL("/ok/1")); g.err == nil {
		t.Error("the certificate was trusted by all")
	}
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "example.org:80"} {
		if s, err := lab.NewSite(lab.SiteOptions{Addr: addr}); err == nil {
			_ = s.Close()
			t.Errorf("listens on %s", addr)
		}
	}
	if s := site(t, lab.SiteOptions{Addr: "127.0.0.2"}); !strings.HasPrefix(s.Addr(), "127.0.0.2:") {
		t.Errorf("listens on %s", s.Addr())
	}
}

func TestFilesAreServedByteForByteAfterTheirFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := make([]string, 0, 60)
	for i := range 60 {
		name := string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ".html"
		names = append(names, name)
		if err := os.WriteFile(filepath.Join(dir, name), lab.PageOf(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	faults := lab.Faults{Rate: 0.5, Times: 2, Kinds: []lab.Fault{lab.FaultUnavailable, lab.FaultTruncated, lab.FaultReset, lab.FaultThrottled}}
	s := site(t, lab.SiteOptions{Files: dir, Faults: faults})
	c := client(t, nil, nil)
	kinds := map[lab.Fault]int{}
	for _, name := range names {
		path := "/files/" + name
		fault := faults.Of(path)
		kinds[fault]++
		bad := 0
		for {
			g := get(t, c, s.URL(path))
			if g.status == http.StatusOK && g.err == nil {
				if !bytes.Equal(g.body, lab.PageOf(name)) || !strings.HasPrefix(g.header.Get("Content-Type"), "text/html") {
					t.Errorf("%s came as %d other bytes, %q", name, len(g.body), g.header.Get("Content-Type"))
				}
				break
			}
			if bad++; bad > 2 {
				break
			}
		}
		if want := map[bool]int{true: 0, false: 2}[fault == ""]; bad != want {
			t.Errorf("%s (%q) failed %d times", name, fault, bad)
		}
	}
	if n := kinds[""]; n < 15 || n > 45 || len(kinds) != 5 {
		t.Errorf("faults are spread as %v", kinds)
	}
	for _, bad := range []string{"/files/../site_test.go", "/files/", "/files/%2e%2e/%2e%2e/etc/passwd", "/files/none.html"} {
		if g := get(t, c, s.URL(bad)); g.status == http.StatusOK {
			t.Errorf("%s was served", bad)
		}
	}
}

func TestASlowFileComesWholeAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := site(t, lab.SiteOptions{Files: dir, Faults: lab.Faults{Rate: 1, Kinds: []lab.Fault{lab.FaultSlow}}})
	began := time.Now()
	if g := get(t, client(t, nil, nil), s.URL("/files/a")); string(g.body) != "text" || time.Since(began) < 300*time.Millisecond {
		t.Errorf("%q after %v, %v", g.body, time.Since(began), g.err)
	}
}

var _ io.Closer = (*lab.Site)(nil)
