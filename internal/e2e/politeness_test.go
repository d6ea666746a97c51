package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/lab"
)

// TestARetryAfterClosesTheHostForEveryURL counts at the site: after a 429 with
// Retry-After: 5 nothing arrives within 5 s but what was granted before, at most
// n-1 requests at host concurrency n, over two workers. A policy of one attempt
// shows that the waits spend none.
func TestARetryAfterClosesTheHostForEveryURL(t *testing.T) {
	inFull(t)
	t.Parallel()
	const urls, closing, shut = 120, 40, 5 * time.Second
	s := newStack(t, 3*time.Minute)
	s.worker("w1")
	s.worker("w2")
	s.proxies(2, 8)
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprintf("at host concurrency %d", n), func(t *testing.T) {
			s := s.of(t)
			site := s.site(lab.SiteOptions{Throttle: lab.Throttle{From: closing, For: shut}})
			c := spec(fmt.Sprintf("shut-%d", n))
			c.Politeness.PerHost = n
			c.Retry.MaxAttempts = 1
			run := s.start(c, urlsOf(urls, func(i int) string { return site.URL(fmt.Sprintf("/slow/%d?ms=20", i)) }))
			if counts := s.finished(run); counts.Completed != urls {
				t.Errorf("counts %+v, want %d completed", counts, urls)
			}
			s.noLeases()

			visits := site.Visits()
			shutAt := visits[closing-1].At
			early, served := 0, 0
			for _, v := range visits[closing:] {
				if since := v.At.Sub(shutAt); since < shut {
					early++
					t.Logf("%s arrived %v after the 429", v.Path, since)
				}
				if v.Status == 200 {
					served++
				}
			}
			if early > n-1 {
				t.Errorf("%d requests arrived within %v of the 429; at host concurrency %d at most %d may", early, shut, n, n-1)
			}
			if served != urls-closing+1 {
				t.Errorf("%d pages were served after the 429, want %d", served, urls-closing+1)
			}
			throttled := 0
			for _, r := range s.records(run) {
				for _, a := range r.Attempts {
					if a.Class != crawl.TargetTransient {
						continue
					}
					throttled++
					if a.ThenWaitMS < shut.Milliseconds()-1000*int64(n) || a.Status != 429 {
						t.Errorf("%s: attempt %+v", r.URL, a)
					}
				}
			}
			if throttled != early+1 {
				t.Errorf("the records hold %d answers 429, the site gave %d", throttled, early+1)
			}
		})
	}
}

// of is the stack for a subtest.
func (s *stack) of(t *testing.T) *stack {
	c := *s
	c.t = t
	return &c
}

// TestAClosedHostIsNoHerd holds how often a URL is deferred: a wait is a
// reservation, and what cannot run soon stays in the frontier.
func TestAClosedHostIsNoHerd(t *testing.T) {
	inFull(t)
	t.Parallel()
	urls, shut, delay := 1000, 30*time.Second, 100*time.Millisecond
	ideal := time.Duration(urls)*delay + shut
	s := newStack(t, 2*time.Minute+2*ideal)
	s.worker("w1")
	s.proxies(4, 16)
	site := s.site(lab.SiteOptions{Throttle: lab.Throttle{From: urls / 2, For: shut}})
	c := spec("herd")
	c.Politeness.Delay, c.Politeness.PerHost = delay, 8
	began := time.Now()
	run := s.start(c, urlsOf(urls, func(i int) string { return site.URL(fmt.Sprintf("/ok/%d", i)) }))
	counts := s.finished(run)
	took := time.Since(began)
	if counts.Completed != int64(urls) {
		t.Errorf("counts %+v, want %d completed", counts, urls)
	}
	s.noLeases()
	perURL := float64(counts.Waits) / float64(urls)
	t.Logf("%d URLs in %v (%v at best): %d deferrals, %.2f a URL; %d early", urls, took.Round(time.Second), ideal, counts.Waits, perURL, site.Early())
	if perURL > 1.2 {
		t.Errorf("%.2f deferrals a URL, want at most 1.2", perURL)
	}
	if counts.Waits == 0 {
		t.Error("nothing waited: the 429 came to nobody")
	}
	if took < ideal-delay {
		t.Errorf("took %v: the interval or the Retry-After was undercut, want at least %v", took, ideal)
	}
	if took > 2*ideal+30*time.Second {
		t.Errorf("took %v, %v at best: the host's turns lapse unused", took, ideal)
	}
	if site.Early() > 7 {
		t.Errorf("%d requests came before the Retry-After had passed", site.Early())
	}
}
