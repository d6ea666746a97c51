package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/lab"
)

// The canaries: passwords that must be nowhere but in Redis and on the wire.
const (
	canaryUser  = "canary-user"
	canaryRight = "right-Zx81Qp7Lm3"
	canaryWrong = "wrong-Kd94Vb2Hs6"
)

// canaries are the forms in which they could leak.
func canaries() []string {
	var all []string
	for _, p := range []string{canaryRight, canaryWrong} {
		all = append(all, p, base64.StdEncoding.EncodeToString([]byte(canaryUser+":"+p)))
	}
	return all
}

// TestAPasswordIsNowhereButInRedis crawls through proxies with passwords, one of
// them wrong and its proxy shouting it back, and looks into everything that is
// written: databases, logs, results, what the commands say.
func TestAPasswordIsNowhereButInRedis(t *testing.T) {
	inFull(t)
	t.Parallel()
	s := newStack(t, 4*time.Minute)
	w := s.worker("w1", "--log-level", "debug")
	right, err := lab.NewProxy(lab.ProxyOptions{Name: "right", Username: canaryUser, Password: canaryRight})
	s.ok(err)
	t.Cleanup(func() { _ = right.Close() })
	socks, err := lab.NewProxy(lab.ProxyOptions{Name: "socks", SOCKS: true, Username: canaryUser, Password: canaryRight})
	s.ok(err)
	t.Cleanup(func() { _ = socks.Close() })
	denied, err := lab.NewProxy(lab.ProxyOptions{
		Name: "denied", SOCKS: true, Username: canaryUser, Password: "another", ListPassword: canaryWrong,
	})
	s.ok(err)
	t.Cleanup(func() { _ = denied.Close() })
	hostile := hostileProxy(t)
	wrong := s.file("wrong.txt", denied.ListLine(), fmt.Sprintf("http://%s:%s@%s", canaryUser, canaryWrong, hostile))
	good := s.file("right.txt", right.ListLine(), socks.ListLine())
	bad := s.file("bad.txt", right.ListLine(), fmt.Sprintf("http://%s:%s@:bad", canaryUser, canaryWrong))
	site, tls := s.site(lab.SiteOptions{}), s.site(lab.SiteOptions{TLS: true})
	of := func(site *lab.Site) []string {
		return append(urlsOf(12, func(i int) string { return site.URL(fmt.Sprintf("/ok/%d", i)) }), site.URL("/echo"))
	}

	said := &strings.Builder{}
	say := func(code int, args ...string) { // -1: done or refused, but not for wrong use
		t.Helper()
		out, errs, got := runs(t, bin.starter, s.flags(args...)...)
		if got != code && (code >= 0 || got > 1) {
			t.Errorf("%v: exit code %d, want %d\n%s%s", args, got, code, out, errs)
		}
		fmt.Fprintf(said, "$ %v\n%s%s\n", args, out, errs)
	}
	say(2, "proxies", "import", bad)
	say(0, "proxies", "import", wrong, "--max-concurrency", "4", "--dry-run")
	say(0, "proxies", "import", wrong, "--max-concurrency", "4")

	// Through tunnels: the site's certificate is not trusted, so that each ends in a fault.
	c := spec("tunnels")
	c.Retry.MaxAttempts = 2
	tunnels := s.start(c, of(tls))
	s.until("both wrong passwords are denied", func() bool { return denied.Stats().Denied > 0 && hostile.tunnels.Load() > 0 })
	say(0, "proxies", "import", good, "--max-concurrency", "4")
	s.finished(tunnels)

	// And as plain requests, the wrong passwords first again.
	say(0, "proxies", "quarantine", "p03", "p04")
	say(0, "proxies", "restore", "p01", "p02")
	say(0, "campaign", "start", "--urls", s.file("urls.txt", of(site)...), "--name", "canary")
	s.until("the wrong password is denied", func() bool { return hostile.plain.Load() > 0 })
	say(0, "proxies", "restore", "p03", "p04")
	run, err := s.frontier.Run(s.ctx, "canary-1")
	s.ok(err)
	if counts := s.finished(run); counts.Completed < 5 || right.Stats().Connects == 0 || right.Stats().Requests == 0 || socks.Stats().Connects == 0 {
		t.Errorf("counts %+v; the proxies with the right password carried %+v and %+v", counts, right.Stats(), socks.Stats())
	}
	for _, format := range []string{"table", "json"} {
		for _, args := range [][]string{
			{"proxies", "list"},
			{"proxies", "show", "p01"},
			{"proxies", "show", "p02"},
			{"proxies", "show", "p03"},
			{"proxies", "show", "p04"},
			{"proxies", "leases"},
			{"campaign", "status", "canary"},
			{"campaign", "list"},
			{"failures", "list", "canary"},
			{"failures", "list", "tunnels"},
			{"results", "tail", "tunnels", "--failures"},
			{"explain", site.URL("/ok/0")},
			{"explain", tls.URL("/ok/0")},
			{"explain", site.URL("/echo")},
			{"results", "tail", "canary"},
			{"results", "show", "canary", site.URL("/echo")},
			{"doctor"},
		} {
			say(-1, append(args, "--output", format)...)
		}
	}
	if !strings.Contains(said.String(), "quarantined") || !strings.Contains(said.String(), "proxy_auth") {
		t.Error("no proxy was quarantined for its password")
	}
	s.noLeases()
	clean(t, "the commands' output", []byte(said.String()))
	s.lookThrough("while it runs")
	if code := w.stop(time.Minute); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	if code := s.services.stop(time.Minute); code != 0 {
		t.Errorf("the services ended with %d", code)
	}
	clean(t, "the worker's log", []byte(w.err.String()))
	clean(t, "the services' log", []byte(s.services.err.String()))
	s.lookThrough("after the stop")
}

// lookThrough searches every file of the data directory and of the results. The
// data directory's redis folder is the Redis: there the passwords must be found,
// or this search finds nothing.
func (s *stack) lookThrough(when string) {
	s.t.Helper()
	found, known, files := map[string]bool{}, false, 0
	for _, root := range []string{s.at.Data, s.resultsDir()} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			if root == s.at.Data && strings.HasPrefix(rel, "redis"+string(filepath.Separator)) {
				for _, c := range []string{canaryRight, canaryWrong} {
					found[c] = found[c] || bytes.Contains(data, []byte(c)) || bytes.Contains(data, []byte(base64.StdEncoding.EncodeToString([]byte(c))))
				}
				return nil
			}
			known = known || strings.HasPrefix(rel, "temporal") && bytes.Contains(data, []byte("/ok/11"))
			clean(s.t, rel+" "+when, data)
			return nil
		})
		s.ok(err)
	}
	for _, c := range []string{canaryRight, canaryWrong} {
		if !found[c] {
			s.t.Errorf("%s: the redis folder does not hold %s: this search would not find it", when, c)
		}
	}
	if !known || files < 8 {
		s.t.Errorf("%s: %d files, the URLs are in Temporal's database: %v; this search looks at the wrong place", when, files, known)
	}
}

// clean fails the test if data holds a canary in any form.
func clean(t *testing.T, what string, data []byte) {
	t.Helper()
	for _, c := range canaries() {
		if i := bytes.Index(data, []byte(c)); i >= 0 {
			t.Errorf("%s holds %s: …%q…", what, c, data[max(0, i-80):min(len(data), i+len(c)+40)])
		}
	}
}

// shouter is a proxy that refuses everybody and says in its reason phrase, header
// and body which password it was given.
type shouter struct {
	net.Listener
	plain, tunnels atomic.Int64 // requests that came with a password
}

func (s *shouter) String() string { return s.Addr().String() }

func hostileProxy(t *testing.T) *shouter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &shouter{Listener: ln}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.shout(c)
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
	})
	return s
}

func (s *shouter) shout(c net.Conn) {
	defer c.Close() //nolint:errcheck // nothing is read back
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	given := req.Header.Get("Proxy-Authorization")
	plain, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(given, "Basic "))
	_, _ = fmt.Fprintf(c, "HTTP/1.1 407 \x1b[31mno %s %s\r\nProxy-Authenticate: Basic realm=\"%s\"\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		plain, given, plain, len(plain), plain)
	switch {
	case len(plain) == 0:
	case req.Method == http.MethodConnect:
		s.tunnels.Add(1)
	default:
		s.plain.Add(1)
	}
}

// file writes a file of lines and returns its path.
func (s *stack) file(name string, lines ...string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	s.ok(os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}
