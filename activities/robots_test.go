package activities_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/lab"
	"holdfast/proxypool"
)

func TestRobotsDecideWhatIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		site   lab.SiteOptions
		state  crawl.State
		reason crawl.Reason
		pages  int
	}{
		"a rule denies the page":            {lab.SiteOptions{Robots: "User-agent: *\nDisallow: /ok/\n"}, crawl.Failed, crawl.ReasonRobotsDenied, 0},
		"a rule for us denies it":           {lab.SiteOptions{Robots: "User-agent: holdfast\nDisallow: /\n\nUser-agent: *\nAllow: /\n"}, crawl.Failed, crawl.ReasonRobotsDenied, 0},
		"a rule for others does not":        {lab.SiteOptions{Robots: "User-agent: other\nDisallow: /\n"}, crawl.Completed, "", 1},
		"a byte order mark changes nothing": {lab.SiteOptions{Robots: "\ufeffUser-agent: *\nDisallow: /ok/\n"}, crawl.Failed, crawl.ReasonRobotsDenied, 0},
		"there is no robots.txt":            {lab.SiteOptions{}, crawl.Completed, "", 1},
		"the crawl-delay is too long":       {lab.SiteOptions{Robots: "User-agent: *\nCrawl-delay: 3600\n"}, crawl.Skipped, crawl.ReasonCrawlDelayTooLong, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.spec.Politeness.Robots = "obey"
			site := w.site(c.site)
			w.through(w.process("a"), w.get(site.URL("/ok/1")))
			r := w.record()
			reason := crawl.Reason("")
			if r.Reason != nil {
				reason = *r.Reason
			}
			if r.State != c.state || reason != c.reason {
				t.Errorf("record %s %q, want %s %q", r.State, reason, c.state, c.reason)
			}
			if n := site.Count("/ok/1"); n != c.pages {
				t.Errorf("the page was asked for %d times, want %d", n, c.pages)
			}
			if n := site.Count("/robots.txt"); n != 1 {
				t.Errorf("robots.txt was asked for %d times", n)
			}
			w.noLeases()
		})
	}
}

func TestAnUnreachableRobotsTxtDisallowsForNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.spec.Politeness.Robots = "obey"
	site := w.site(lab.SiteOptions{RobotsStatus: 503})
	out := fetched(t, w.process("a"), input(w.get(site.URL("/ok/1")), 1))
	if out.Class != crawl.Deferred || out.Why != crawl.WaitRobots || out.Wait() < time.Minute {
		t.Errorf("outcome %+v, want a wait for robots.txt of minutes", out)
	}
	if n := site.Count("/ok/1"); n != 0 {
		t.Errorf("the page was asked for %d times", n)
	}
}

func TestTheCrawlDelayIsKeptAtTheSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.spec.Politeness.Robots = "obey"
	site := w.site(lab.SiteOptions{Robots: "User-agent: *\nCrawl-delay: 1\n"})
	a := w.process("a")
	tasks := w.start(crawl.Request{URL: site.URL("/ok/1")}, crawl.Request{URL: site.URL("/ok/2")}, crawl.Request{URL: site.URL("/ok/3")})
	// No grant is older than this, so that page n comes n-1 delays after it at the
	// soonest, however busy the machine is.
	began, pages := time.Now(), 0
	for _, task := range tasks {
		w.through(a, task)
	}
	for _, v := range site.Visits() {
		if v.Path == "/robots.txt" {
			continue // read before the delay was known
		}
		soonest := time.Duration(pages) * time.Second
		pages++
		if came := v.At.Sub(began); came < soonest-2*time.Millisecond { // Redis counts whole milliseconds
			t.Errorf("%s, page %d, came %v after the start; want %v at the soonest", v.Path, pages, came, soonest)
		}
	}
	if pages != 3 {
		t.Errorf("%d pages were asked for, want 3", pages)
	}
}

func TestARobotsTxtBehindADeadProxyIsTheProxysFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.spec.Politeness.Robots = "obey"
	site := w.site(lab.SiteOptions{})
	w.proxy(lab.ProxyOptions{Behaviour: lab.Refuse})
	in := input(w.get(site.URL("/ok/1")), 1)
	a := w.process("a")
	out := fetched(t, a, in)
	if out.Class != crawl.ProxyFault || out.Proxy == "" {
		t.Errorf("outcome %+v", out)
	}
	must(t, doFinish(t, a, finishing(in, out)))
	w.noLeases()
	proxies, err := w.pool.Proxies(t.Context())
	must(t, err)
	if p := proxies[0]; p.Failures != 1 || p.InUse != 0 {
		t.Errorf("proxy %+v, want one failure", p)
	}
}

func TestTwentyURLsOfAnOriginReadItsRobotsTxtOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		w.spec.Politeness.Robots = "obey"
		var reads atomic.Int64
		srv := w.server(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				reads.Add(1)
				time.Sleep(300 * time.Millisecond) // the others come meanwhile
			}
			_, _ = rw.Write([]byte("User-agent: *\nAllow: /\n"))
		})
		var requests []crawl.Request
		for i := range 20 {
			requests = append(requests, crawl.Request{URL: fmt.Sprintf("%s/%d", srv.URL, i)})
		}
		a, b := w.process("a"), w.process("b")
		var group sync.WaitGroup
		for i, task := range w.start(requests...) {
			group.Go(func() {
				p := a
				if i%2 == 1 {
					p = b
				}
				w.through(p, task)
			})
		}
		group.Wait()
		if n := reads.Load(); n != 1 {
			t.Errorf("robots.txt was read %d times", n)
		}
		if c := w.counts(); c.Completed != 20 {
			t.Errorf("counts %+v", c)
		}
		w.noLeases()
	})
}

func TestAnUnsafeRequestIsStillAskedWhenItsRobotsLeaseHadAHolder(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]bool{"who died": false, "who released it and died": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.spec.Politeness.Robots = "obey"
			site := w.site(lab.SiteOptions{})
			task := w.start(crawl.Request{Method: "POST", URL: site.URL("/ok/1"), Body: "x"})[0]
			lease := crawl.RobotsLease(input(task, 1).LeaseID)
			_, err := w.pool.Acquire(t.Context(), proxypool.AcquireRequest{
				LeaseID: lease, Holder: "dead", Claimant: task.WorkflowID(), Host: task.Host, Selector: proxypool.Selector{Direct: true},
			})
			must(t, err)
			if ended {
				_, err := w.pool.Release(t.Context(), proxypool.ReleaseRequest{LeaseID: lease})
				must(t, err)
			}
			if out, _ := w.through(w.process("a"), task); out.Class != crawl.OK {
				t.Errorf("outcome %+v", out)
			}
			if n := site.Count("/ok/1"); n != 1 {
				t.Errorf("the page was asked for %d times", n)
			}
		})
	}
}

func TestARedirectKeepsToTheRobotsTxtOfWhereItLeads(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(w *world, own *httptest.Server) string{
		"on the same host": func(_ *world, own *httptest.Server) string { return own.URL + "/private/" },
		"on another host": func(w *world, _ *httptest.Server) string {
			return w.site(lab.SiteOptions{Robots: "User-agent: *\nDisallow: /ok/\n"}).URL("/ok/1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.spec.Politeness.Robots = "obey"
			var target string
			var private atomic.Int64
			own := w.server(func(rw http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/robots.txt":
					_, _ = rw.Write([]byte("User-agent: *\nDisallow: /private/\n"))
				case "/private/":
					private.Add(1)
				default:
					http.Redirect(rw, r, target, http.StatusFound)
				}
			})
			target = to(w, own)
			w.through(w.process("a"), w.get(own.URL+"/start"))
			r := w.record()
			if r.Reason == nil || *r.Reason != crawl.ReasonRobotsDenied || len(r.Redirects) != 1 || r.Redirects[0].To != target {
				t.Errorf("record %+v", r)
			}
			if private.Load() != 0 {
				t.Error("the page was asked for")
			}
			w.noLeases()
		})
	}
}
