package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/lab"
	"holdfast/starter/cli"
)

// TestExplainTellsEveryAttemptWithoutAWorker takes one URL through a proxy's
// fault, a 503 and a Retry-After, stops the worker and asks what happened.
func TestExplainTellsEveryAttemptWithoutAWorker(t *testing.T) {
	t.Parallel()
	s := newStack(t, 3*time.Minute)
	w := s.worker("w1")
	dead, err := lab.NewProxy(lab.ProxyOptions{Name: "dead", Behaviour: lab.Refuse})
	s.ok(err)
	t.Cleanup(func() { _ = dead.Close() })
	s.importProxies(dead.ListLine()+"\n", 4) // p01, alone at first: it is the one to be tried
	site := s.site(lab.SiteOptions{Throttle: lab.Throttle{From: 2, For: 3 * time.Second}})
	asleep := s.site(lab.SiteOptions{})
	url, sleeper := site.URL("/flaky/1?times=1"), asleep.URL("/throttled/1?after=7200")
	run := s.start(spec("told"), []string{url})
	s.until("the dead proxy is blamed", func() bool {
		p, err := s.pool.Proxy(s.ctx, "p01")
		s.ok(err)
		return p.Failures > 0
	})
	s.proxies(4, 4) // always one that the URL has not used: the dead one is not asked again
	if c := s.finished(run); c.Completed != 1 {
		t.Fatalf("counts %+v", c)
	}
	s.ok(s.pool.Quarantine(s.ctx, "p01")) // it has cooled off by now, and would be tried again
	waits := s.start(spec("asleep"), []string{sleeper})
	s.until("the other URL waits", func() bool {
		c, err := s.frontier.Counts(s.ctx, waits.Name())
		s.ok(err)
		return c.Waiting == 1
	})
	if code := w.stop(time.Minute); code != 0 {
		t.Fatalf("the worker ended with %d", code)
	}

	told := s.explain(url)
	if told.State != crawl.Completed || told.Pending != "" || told.Result == nil || told.Result.Attempts != 4 {
		t.Errorf("explained as %s, pending %q, result %+v", told.State, told.Pending, told.Result)
	}
	type attempt struct {
		class  crawl.Class
		status int
		waited bool
		why    string // a part of it
	}
	want := []attempt{
		{crawl.ProxyFault, 0, false, ""},
		{crawl.TargetTransient, 503, true, "503 via "},
		{crawl.TargetTransient, 429, true, "Retry-After 3 s, 429 via "},
		{crawl.OK, 200, false, ""},
	}
	var got []cli.Pass
	for _, p := range told.Passes {
		if p.Attempt > 0 {
			got = append(got, p)
		} else if p.Wait == nil || p.Outcome.Why == "" {
			t.Errorf("pass %d is no attempt and tells no wait: %+v", p.N, p)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d attempts are told, want %d: %+v", len(got), len(want), got)
	}
	for i, a := range want {
		p := got[i]
		if p.Outcome.Class != a.class || p.Outcome.Status != a.status || !strings.HasPrefix(p.Outcome.Worker, "w1/") || p.Outcome.Proxy == "" {
			t.Errorf("attempt %d: %+v, want %+v", i+1, p.Outcome, a)
		}
		if (i == 0) != (p.Outcome.Proxy == "p01") {
			t.Errorf("attempt %d took proxy %s", i+1, p.Outcome.Proxy)
		}
		if (p.Wait != nil) != a.waited || a.waited && (!strings.Contains(p.Wait.Why, a.why+p.Outcome.Proxy) || !p.Wait.Over) {
			t.Errorf("attempt %d: wait %+v, want one because of %q", i+1, p.Wait, a.why)
		}
	}
	if w := got[2].Wait; w != nil && w.ForMS < 3000 {
		t.Errorf("the Retry-After of 3 s is told as a wait of %d ms", w.ForMS)
	}

	still := s.explain(sleeper)
	if still.State != crawl.Waiting || !strings.Contains(still.Pending, "Retry-After 7200 s, 429 via ") || len(still.Passes) != 1 || still.Passes[0].Wait.Over {
		t.Errorf("a URL that sleeps is explained as %s, pending %q, %+v", still.State, still.Pending, still.Passes)
	}

	out, _, code := runs(t, bin.starter, s.flags("explain", url)...)
	if code != 0 {
		t.Errorf("explain: exit code %d", code)
	}
	for _, part := range []string{url, "completed", "w1/", "p01", "proxy_fault", "connect_refused", "503", "429", "Retry-After 3 s", "200 ok"} {
		if !strings.Contains(out, part) {
			t.Errorf("the table lacks %q:\n%s", part, out)
		}
	}
	t.Logf("\n%s", out)
}

func (s *stack) explain(url string) cli.Explained {
	s.t.Helper()
	out, errs, code := runs(s.t, bin.starter, s.flags("explain", url, "--output", "json")...)
	var x cli.Explained
	if err := json.Unmarshal([]byte(out), &x); err != nil || code != 0 {
		s.t.Fatalf("explain %s: exit code %d, %v\n%s%s", url, code, err, out, errs)
	}
	return x
}
