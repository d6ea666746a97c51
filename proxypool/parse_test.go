package proxypool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/proxypool"
)

func TestProxyLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"10.0.0.1:3128":                          "http 10.0.0.1 3128 - -",
		"Proxy.Example.ORG:80":                   "http proxy.example.org 80 - -",
		"user:pass@host:8080":                    "http host 8080 user pass",
		"user@host:8080":                         "http host 8080 user -",
		"foo%40bar:p%3Aw@host:1":                 "http host 1 foo@bar p:w",
		"user:pa:ss@host:1":                      "http host 1 user pa:ss",
		"user:p@ss@host:1":                       "http host 1 user p@ss",
		"user:p+s@host:1":                        "http host 1 user p+s",
		"https://u:p@host:443/":                  "https host 443 u p",
		"SOCKS5://host:1080":                     "socks5 host 1080 - -",
		"socks5h://u:p@[2001:DB8::1]:1080":       "socks5h 2001:db8::1 1080 u p",
		"[2001:db8::1]:3128":                     "http 2001:db8::1 3128 - -",
		"host:8080:user:pass":                    "http host 8080 user pass",
		"host:8080:user:pa:ss":                   "http host 8080 user pa:ss",
		"host:8080:us%40er:p%40":                 "http host 8080 us%40er p%40",
		"[::1]:8080:user:pass":                   "http ::1 8080 user pass",
		"socks5://host:8080:user:pass":           "socks5 host 8080 user pass",
		"  10.0.0.1:3128  # the office's ":       "http 10.0.0.1 3128 - -",
		"user:pass#1@host:80":                    "http host 80 user pass#1",
		"us_er-session-1.a:p@gate.example.com:7": "http gate.example.com 7 us_er-session-1.a p",
	} {
		entries, err := proxypool.ParseList(strings.NewReader(line), "f", proxypool.ImportOptions{})
		if err != nil || len(entries) != 1 {
			t.Errorf("%s: %d entries, %v", line, len(entries), err)
			continue
		}
		p := entries[0].Proxy
		dash := func(s string) string {
			if s == "" {
				return "-"
			}
			return s
		}
		if got := fmt.Sprintf("%s %s %d %s %s", p.Scheme, p.Host, p.Port, dash(p.Username), dash(p.Password)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestBadProxyLinesAreNamedAndNotQuoted(t *testing.T) {
	t.Parallel()
	bad := []string{
		"canary", "canary:", "canary:0", "canary:65536", "canary:80x", ":80", "canary:80:user", "canary:80::pass",
		"u%6q:canary@host:80", "u:canary%zz@host:80", "u:canary@host", "u:canary@host:", "u:canary@:80", "@canary:80",
		":canary@host:80", "ftp://canary:80", "socks4://canary:80", "http://u:canary@host:80/path", "http://host:80?canary",
		"2001:db8::1:8080", "2001:db8::1", "1:2:3:4:5:6:7:8:8080", "[2001:db8::zz]:80", "[::1:80", "[10.0.0.1]:80", "[fe80::1%25eth0]:80",
		"can ary:80", "u:canary@ho st:80", "canary..org:80", "-canary:80", "canary/:80", "300.1.1.1:80", "0x7f.1:80", "u%00:canary@h:80",
		"u:canary%0d%0a@h:80", "u%3Ax:canary@h:80", "u:" + strings.Repeat("canary", 50) + "@h:80", strings.Repeat("a", 300) + ":80",
	}
	list := "ok:1\n" + strings.Join(bad, "\n") + "\nok:2\n"
	entries, err := proxypool.ParseList(strings.NewReader(list), "proxies.txt", proxypool.ImportOptions{})
	var le *proxypool.ListError
	if !errors.As(err, &le) {
		t.Fatalf("error %v, want a *ListError", err)
	}
	if entries != nil {
		t.Errorf("%d entries beside an error, want none", len(entries))
	}
	found := map[int]bool{}
	for _, p := range le.Problems {
		found[p.Line] = true
		if strings.Contains(p.Err.Error(), "canary") {
			t.Errorf("line %d: the problem quotes the line: %v", p.Line, p.Err)
		}
	}
	for i, line := range bad {
		if !found[i+2] {
			t.Errorf("%q was taken", line)
		}
	}
	if found[1] || found[len(bad)+2] {
		t.Error("a good line was refused")
	}
	if msg := err.Error(); !strings.HasPrefix(msg, "proxies.txt:2: ") || !strings.Contains(msg, "more") {
		t.Errorf("message %q", msg)
	}
}

func TestListsMayHaveCommentsBlankLinesABOMAndCRLF(t *testing.T) {
	t.Parallel()
	list := "\ufeffa:1\r\n\r\n# a comment\r\n   # another\r\nb:2 # why\r\n\t\r\nc:3"
	entries, err := proxypool.ParseList(strings.NewReader(list), "f", proxypool.ImportOptions{Scheme: "socks5"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%d %s %s:%d", e.Line, e.Proxy.Scheme, e.Proxy.Host, e.Proxy.Port))
	}
	if want := "[1 socks5 a:1 5 socks5 b:2 7 socks5 c:3]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestALineThatIsTooLongIsNamed(t *testing.T) {
	t.Parallel()
	_, err := proxypool.ParseList(strings.NewReader("a:1\nb:2\n"+strings.Repeat("x", 5000)+"\n"), "f", proxypool.ImportOptions{})
	if err == nil || !strings.Contains(err.Error(), "f:3: longer") {
		t.Errorf("error %v", err)
	}
}

func FuzzProxyLine(f *testing.F) {
	for _, s := range []string{
		"10.0.0.1:3128", "user:pass@host:8080", "foo%40bar:x@h:1", "u%6q:x@h:1", "https://u:p@host:443/", "socks5h://[::1]:1",
		"host:8080:user:pa:ss", "2001:db8::1:8080", "\ufeffa:1\r", "# x", "a:1 # x", "::::", "@@:1", "http://:1", "[]:1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		entries, err := proxypool.ParseList(strings.NewReader(line), "f", proxypool.ImportOptions{})
		if err != nil {
			var le *proxypool.ListError
			if !errors.As(err, &le) || len(entries) != 0 {
				t.Fatalf("%q: %v and %d entries", line, err, len(entries))
			}
			return
		}
		for _, e := range entries {
			p := e.Proxy
			if p.Host == "" || p.Port < 1 || p.Port > 65535 || strings.ContainsAny(p.Host, "@/?#| \t\r\n") {
				t.Fatalf("%q: host %q port %d", line, p.Host, p.Port)
			}
			if strings.ContainsAny(p.Username+p.Password, "\r\n\x00") || strings.Contains(p.Username, ":") {
				t.Fatalf("%q: credentials that no header can carry", line)
			}
			// What the transport will be given reads back as the same proxy.
			again, err := proxypool.ParseProxy(p.URL().String())
			if err != nil || again.Host != p.Host || again.Port != p.Port || again.Username != p.Username || again.Password != p.Password || again.Scheme != p.Scheme {
				t.Fatalf("%q: as a URL it reads back otherwise: %v", line, err)
			}
		}
	})
}
