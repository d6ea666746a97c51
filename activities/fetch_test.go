package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/activities"
	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/lab"
	"holdfast/proxypool"
	"holdfast/workflows"
)

func TestARetryAfterClosesTheHostBeforeItsBodyIsRead(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		srv := w.server(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "60")
			rw.Header().Set("Content-Length", "1000")
			rw.WriteHeader(http.StatusTooManyRequests)
			_ = http.NewResponseController(rw).Flush()
			<-release
		})
		task := w.get(srv.URL + "/")
		done := background(w.process("a"), input(task, 1))
		eventually(t, "the host is closed", func() bool {
			turns, err := w.pool.Turns(context.Background(), []string{task.Host})
			return err == nil && turns[0] > 50*time.Second
		})
		select {
		case got := <-done:
			t.Errorf("the fetch had ended already: %+v", got)
		default:
		}
		close(release)
		<-done
	})
}

// ending is a Fetch's result.
type ending struct {
	out crawl.Outcome
	err error
}

// background starts a Fetch; its end comes over the channel.
func background(a *activities.Activities, in workflows.FetchInput) chan ending {
	done := make(chan ending, 1)
	go func() {
		var e ending
		e.err = execute(context.Background(), workflows.ActivityFetch, a, in, &e.out)
		done <- e
	}()
	return done
}

func TestARedirectTakesATurnAtItsHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		closed time.Duration
		defers bool
	}{
		"that is free":          {0, false},
		"that is soon":          {time.Second, false},
		"that patience outruns": {2600 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, w *world) {
				site := w.site(lab.SiteOptions{})
				from := w.server(func(rw http.ResponseWriter, r *http.Request) {
					http.Redirect(rw, r, site.URL("/redirect/7"), http.StatusFound)
				})
				task, a := w.get(from.URL+"/"), w.process("a")
				closed := time.Now()
				if c.closed > 0 {
					must(t, w.pool.CloseHost(t.Context(), site.Addr(), c.closed))
				}
				first := fetched(t, a, input(task, 1))
				if c.defers != (first.Class == crawl.Deferred) || c.defers && (first.Why != crawl.WaitRedirect || first.NextURL != site.URL("/redirect/7") || first.Hops != 1) {
					t.Fatalf("outcome %+v", first)
				}
				// The first pass again, elsewhere: it was answered, and is not asked again.
				out, _ := w.through(w.process("b"), task)
				r := w.record()
				if out.Class != crawl.OK || !strings.HasSuffix(r.FinalURL, "/ok/7") || len(r.Redirects) != 4 {
					t.Errorf("outcome %+v, redirects %+v", out, r.Redirects)
				}
				for _, v := range site.Visits() {
					if v.At.Before(closed.Add(c.closed)) {
						t.Errorf("%s was asked %v before its time", v.Path, closed.Add(c.closed).Sub(v.At))
					}
				}
				w.noLeases()
			})
		})
	}
}

func TestAPostThatBecameAGetGoesOnAsOneInTheNextPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	var posts atomic.Int64
	var method, body atomic.Value
	to := w.server(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		method.Store(r.Method + " " + r.Header.Get("Content-Type"))
		body.Store(string(b))
	})
	from := w.server(func(rw http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		http.Redirect(rw, r, to.URL+"/done", http.StatusSeeOther)
	})
	task := w.start(crawl.Request{Method: "POST", URL: from.URL + "/order", Body: "a=1", Headers: map[string]string{"Content-Type": "text/x-order"}})[0]
	must(t, w.pool.CloseHost(t.Context(), strings.TrimPrefix(to.URL, "http://"), 2600*time.Millisecond))
	out, _ := w.through(w.process("a"), task)
	if out.Class != crawl.OK || posts.Load() != 1 || method.Load() != "GET " || body.Load() != "" {
		t.Errorf("outcome %+v, %d posts, then %q with %q", out, posts.Load(), method.Load(), body.Load())
	}
}

func TestRedisAwayInMidExchangeIsAnErrorAndCommitsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	site := w.site(lab.SiteOptions{})
	w.change = func(c *activities.Config) { c.Pool = trusting{w.pool, 3 * time.Second} }
	done := background(w.process("a"), input(w.get(site.URL("/slow/1?ms=500")), 1))
	eventually(t, "the site is asked", func() bool { return site.Total() == 1 })
	w.mini.Close()
	if got := <-done; got.err == nil {
		t.Errorf("outcome %+v, want an error: nothing is committed", got.out)
	}
	must(t, w.mini.Restart())
	leases, err := w.pool.Leases(t.Context())
	must(t, err)
	if len(leases) != 1 {
		t.Errorf("leases %+v: the fetch could not have released it", leases)
	}
}

// trusting shortens the time for which a lease is trusted.
type trusting struct {
	activities.Leaser
	trust time.Duration
}

func (p trusting) Acquire(ctx context.Context, r proxypool.AcquireRequest) (proxypool.Acquired, error) {
	a, err := p.Leaser.Acquire(ctx, r)
	if a.Grant != nil {
		a.Grant.Deadline = time.Now().Add(p.trust)
	}
	return a, err
}

func (p trusting) Renew(context.Context, string, int64) (proxypool.Renewal, error) {
	return proxypool.Renewal{}, errors.New("redis is away")
}

func TestALeaseThatCannotBeRenewedEndsItsExchange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	site := w.site(lab.SiteOptions{})
	w.change = func(c *activities.Config) { c.Pool = trusting{w.pool, time.Second} }
	began := time.Now()
	out := fetched(t, w.process("a"), input(w.get(site.URL("/stall/1")), 1))
	if out.Class != crawl.Deferred || out.Why != crawl.WaitSuperseded {
		t.Errorf("outcome %+v", out)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the exchange went on for %v after its lease was lost", took)
	}
}

func TestAnExchangeIsStoppedFromOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop func(w *world, a *activities.Activities, in workflows.FetchInput) error
		want crawl.Class
	}{
		"by an abort in the same process": {func(w *world, a *activities.Activities, in workflows.FetchInput) error {
			return a.Abort(w.t.Context(), workflows.AbortInput{LeaseID: in.LeaseID})
		}, crawl.Canceled},
		"by an abort elsewhere": {func(w *world, _ *activities.Activities, in workflows.FetchInput) error {
			return w.process("b").Abort(w.t.Context(), workflows.AbortInput{LeaseID: in.LeaseID})
		}, crawl.Canceled},
		"by its campaign's cancel": {func(w *world, a *activities.Activities, _ workflows.FetchInput) error {
			return errors.Join(w.frontier.Cancel(w.t.Context(), w.run), a.AbortCanceled(w.t.Context()))
		}, crawl.Canceled},
		"by a worker that stops": {func(_ *world, a *activities.Activities, _ workflows.FetchInput) error {
			a.HandOn()
			return nil
		}, crawl.HandedOn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			site := w.site(lab.SiteOptions{})
			a, in := w.process("a"), input(w.get(site.URL("/stall/1")), 1)
			done := background(a, in)
			eventually(t, "the site is asked", func() bool { return site.Total() == 1 })
			began := time.Now()
			must(t, c.stop(w, a, in))
			got := <-done
			if got.err != nil || got.out.Class != c.want {
				t.Errorf("ended %+v, %v; want %s", got.out, got.err, c.want)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			must(t, doFinish(t, a, finishing(in, got.out)))
			w.noLeases()
			if n := a.Running(); n != 0 {
				t.Errorf("%d fetches hold a slot", n)
			}
		})
	}
}

func TestADrainingWorkerHandsOnAndAsksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	site := w.site(lab.SiteOptions{})
	a := w.process("a")
	a.DrainFetches()
	if out := fetched(t, a, input(w.get(site.URL("/ok/1")), 1)); out.Class != crawl.HandedOn || out.Held {
		t.Errorf("outcome %+v", out)
	}
	if n := site.Total(); n != 0 {
		t.Errorf("the site was asked %d times", n)
	}
	w.noLeases()
}

func TestAPassEndsByItselfBeforeItsActivityDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	site := w.site(lab.SiteOptions{})
	w.spec.Fetch.Timeout = 2 * time.Second
	a, in := w.process("a"), input(w.get(site.URL("/stall/1")), 1)
	for name, c := range map[string]struct {
		left time.Duration
		asks int
	}{
		"no time for a whole exchange": {6 * time.Second, 0},
		"time enough":                  {20 * time.Second, 1},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), c.left)
		before := site.Total()
		err := execute(ctx, workflows.ActivityFetch, a, in, nil)
		if ctx.Err() != nil {
			t.Errorf("%s: the activity's deadline passed", name)
		}
		cancel()
		if n := site.Total() - before; n != c.asks || (c.asks == 0) != (err != nil) {
			t.Errorf("%s: the site was asked %d times; %v", name, n, err)
		}
		in = input(in.Task, in.Pass+1)
	}
}

func TestWithoutBodiesNoFileIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.spec.Results.Bodies = "none"
	site := w.site(lab.SiteOptions{})
	out, _ := w.through(w.process("a"), w.get(site.URL("/ok/1")))
	if r := w.record(); r.Body != nil || r.Bytes != int64(len(lab.PageOf("1"))) || out.Class != crawl.OK {
		t.Errorf("record %+v", r)
	}
	_ = filepath.WalkDir(w.dir, func(path string, d os.DirEntry, _ error) error {
		if d != nil && !d.IsDir() && strings.Contains(path, "bodies") {
			t.Errorf("file %s", path)
		}
		return nil
	})
}

func TestARequestsExtrasReachTheSiteAndTheRecord(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		w.spec.Fetch.Headers = map[string]string{"X-Campaign": "c", "X-Both": "campaign"}
		type seen struct{ method, body, own, campaign, both, agent string }
		got := make(chan seen, 1)
		srv := w.server(func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			h := r.Header
			got <- seen{r.Method, string(b), h.Get("X-Own"), h.Get("X-Campaign"), h.Get("X-Both"), h.Get("User-Agent")}
		})
		task := w.start(crawl.Request{
			Method: "PUT", URL: srv.URL + "/p", Body: "the body", Headers: map[string]string{"X-Own": "o", "X-Both": "own"}, Meta: json.RawMessage(`{"k":1}`),
		})[0]
		w.through(w.process("a"), task)
		if g, want := <-got, (seen{"PUT", "the body", "o", "c", "own", "holdfast/1.0"}); g != want {
			t.Errorf("the site saw %+v, want %+v", g, want)
		}
		if r := w.record(); string(r.Meta) != `{"k":1}` || r.Method != "PUT" {
			t.Errorf("record %+v", r)
		}
	})
}

// slowFrontier takes its time to fail.
type slowFrontier struct {
	activities.Frontier
	takes time.Duration
}

func (f slowFrontier) Run(ctx context.Context, _ string) (frontier.RunInfo, error) {
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
	}
	return frontier.RunInfo{}, errors.New("redis is away")
}

func TestFetchesThatWaitForARunFailTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.change = func(c *activities.Config) { c.Frontier = slowFrontier{w.frontier, time.Second} }
	a := w.process("a")
	task := w.get("http://127.0.0.1:1/")
	began := time.Now()
	var all []chan ending
	for n := range 20 {
		all = append(all, background(a, input(task, n+1)))
	}
	for _, done := range all {
		if got := <-done; got.err == nil {
			t.Errorf("outcome %+v", got.out)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("20 fetches failed one after the other, in %v", took)
	}
}

func TestAHostsSessionKeepsToOneProxy(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		srv := w.server(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "page") })
		var lines strings.Builder
		for range 6 {
			p, err := lab.NewProxy(lab.ProxyOptions{})
			must(t, err)
			t.Cleanup(func() { _ = p.Close() })
			lines.WriteString(p.ListLine() + "\n")
		}
		entries, err := proxypool.ParseList(strings.NewReader(lines.String()), "proxies", proxypool.ImportOptions{})
		must(t, err)
		_, err = w.pool.Import(t.Context(), entries, proxypool.ImportOptions{MaxConcurrency: 5})
		must(t, err)
		w.spec.Proxies = crawl.ProxySpec{Session: "host"}
		var requests []crawl.Request
		for _, path := range []string{"/1", "/2", "/3", "/4", "/5"} {
			requests = append(requests, crawl.Request{URL: srv.URL + path})
		}
		seen := map[string]int{}
		a := w.process("a")
		for _, task := range w.start(requests...) {
			out := <-background(a, input(task, 1))
			must(t, out.err)
			seen[out.out.Proxy]++
		}
		if len(seen) != 1 || seen[""] > 0 {
			t.Errorf("five URLs of a host went through %v; want one proxy", seen)
		}
	})
}
