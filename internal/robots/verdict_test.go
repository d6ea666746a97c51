package robots_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/robots"
)

func TestTheAnswerDecidesWhatMayBeAsked(t *testing.T) {
	t.Parallel()
	deny := []byte("User-agent: *\nDisallow: /p\nCrawl-delay: 10")
	cases := []struct {
		name    string
		outcome crawl.Outcome
		access  robots.Access
		judged  bool
	}{
		{"200", crawl.Outcome{Class: crawl.OK, Status: 200}, robots.ByRules, true},
		{"404", crawl.Outcome{Class: crawl.TargetPermanent, Status: 404}, robots.Open, true},
		{"401", crawl.Outcome{Class: crawl.TargetPermanent, Status: 401}, robots.Open, true},
		{"403", crawl.Outcome{Class: crawl.Blocked, Status: 403}, robots.Open, true},
		{"too many redirects", crawl.Outcome{Class: crawl.TargetPermanent, Status: 302, Reason: crawl.ReasonTooManyRedirects}, robots.Open, true},
		{"429", crawl.Outcome{Class: crawl.TargetTransient, Status: 429}, robots.Closed, true},
		{"503", crawl.Outcome{Class: crawl.TargetTransient, Status: 503}, robots.Closed, true},
		{"501", crawl.Outcome{Class: crawl.TargetPermanent, Status: 501}, robots.Closed, true},
		{"a timeout", crawl.Outcome{Class: crawl.Ambiguous, Reason: crawl.ReasonTimeout}, robots.Closed, true},
		{"no such host", crawl.Outcome{Class: crawl.Permanent, Reason: crawl.ReasonNoSuchHost}, robots.Closed, true},
		{"too large", crawl.Outcome{Class: crawl.TooLarge, Status: 200}, robots.ByRules, true},
		{"the proxy's fault", crawl.Outcome{Class: crawl.ProxyFault}, "", false},
		{"the proxy's password", crawl.Outcome{Class: crawl.ProxyAuth}, "", false},
		{"canceled", crawl.Outcome{Class: crawl.Canceled}, "", false},
		{"deferred", crawl.Outcome{Class: crawl.Deferred}, "", false},
	}
	for _, tc := range cases {
		e, ok := robots.Judge(tc.outcome, deny, "holdfast/1")
		if e.Access != tc.access || ok != tc.judged {
			t.Errorf("%s: %q, %v", tc.name, e.Access, ok)
		}
		ttl := robots.TTL
		if tc.access == robots.Closed {
			ttl = robots.UnreachableTTL
		}
		if ok && e.TTL() != ttl {
			t.Errorf("%s: kept for %v", tc.name, e.TTL())
		}
		wantP := tc.access == robots.Open
		wantQ := tc.access == robots.Open || tc.access == robots.ByRules
		if e.Allowed("/p") != wantP || e.Allowed("/q") != wantQ {
			t.Errorf("%s: /p %v, /q %v", tc.name, e.Allowed("/p"), e.Allowed("/q"))
		}
		if d, paced := e.CrawlDelay(); paced != (tc.access == robots.ByRules) || paced && d != 10*time.Second {
			t.Errorf("%s: crawl-delay %v, %v", tc.name, d, paced)
		}
	}
	if e, _ := robots.Judge(crawl.Outcome{Class: crawl.TooLarge}, nil, "x"); e.Access != robots.Closed {
		t.Error("nothing came of a file that is too large, and it opens the site")
	}
}

func TestEntriesSurviveTheirEncoding(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	many.WriteString("User-agent: *\nCrawl-delay: 1.5\n")
	for i := range 5000 {
		fmt.Fprintf(&many, "Disallow: /dir-%d/\nAllow: /dir-%d/ok-%d$\n", i, i, i)
	}
	for name, e := range map[string]robots.Entry{
		"open":   {Access: robots.Open, Status: 404},
		"closed": {Access: robots.Closed, Status: 503},
		"empty":  judge(""),
		"small":  judge("User-agent: *\nDisallow: /a b\nAllow: /ü*x$\nCrawl-delay: 0"),
		"large":  judge(many.String()),
	} {
		data, err := e.MarshalBinary()
		if err != nil || len(data) > robots.MaxEncoded {
			t.Fatalf("%s: %d bytes, %v", name, len(data), err)
		}
		var got robots.Entry
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Access != e.Access || got.Status != e.Status {
			t.Errorf("%s: %+v", name, got)
		}
		d1, ok1 := e.CrawlDelay()
		if d2, ok2 := got.CrawlDelay(); d1 != d2 || ok1 != ok2 {
			t.Errorf("%s: delay %v, want %v", name, d2, d1)
		}
		for _, p := range []string{"/", "/a b", "/üx", "/dir-77/x", "/dir-77/ok-77", "/dir-5000/"} {
			if got.Allowed(p) != e.Allowed(p) {
				t.Errorf("%s: %s is now %v", name, p, got.Allowed(p))
			}
		}
	}
	for _, bad := range []string{"", "x", "p", "pnope 1 1\n", "prules 200 -1\n/x\n", "prules a b\n", "z\xff\xff"} {
		var e robots.Entry
		if err := e.UnmarshalBinary([]byte(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, e)
		}
	}
}

func TestRulesThatDoNotFitForbidMoreNeverLess(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("User-agent: *\n")
	paths := make([]string, 0, 4000)
	for i := range 4000 { // random-looking, so that it does not deflate
		p := fmt.Sprintf("/%x%x%x", uint64(i)*0x9e3779b97f4a7c15, uint64(i)*0xbf58476d1ce4e5b9, uint64(i+7)*0x94d049bb133111eb)
		paths = append(paths, p)
		fmt.Fprintf(&b, "Disallow: %s\nAllow: %s/public\n", p, p)
	}
	e := judge(b.String())
	data, err := e.MarshalBinary()
	if err != nil || len(data) > robots.MaxEncoded {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	var got robots.Entry
	if err := got.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if got.Allowed(paths[0] + "/public") {
		t.Error("the rules fit whole: the test shows nothing")
	}
	for _, p := range paths {
		if got.Allowed(p) || got.Allowed(p+"/x") {
			t.Fatalf("%s became allowed", p)
		}
	}
}

func judge(file string) robots.Entry {
	e, _ := robots.Judge(crawl.Outcome{Class: crawl.OK, Status: 200}, []byte(file), "holdfast")
	return e
}

func TestABufferKeepsWhatIsRead(t *testing.T) {
	t.Parallel()
	var b robots.Buffer
	for range 100 {
		if n, err := b.Write(make([]byte, 10_000)); n != 10_000 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n := len(b.Bytes()); n < robots.MaxBytes || n > robots.MaxBytes+8 {
		t.Errorf("kept %d bytes", n)
	}
}
