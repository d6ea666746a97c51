package activities_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/activities"
	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/lab"
	"holdfast/internal/results"
)

func TestFinishDoesItsPartsOnceHoweverOftenAndWhereverItRuns(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]string{
		"once": "a", "twice by the same": "aa", "three times by the same": "aaa",
		"by another process": "b", "by the same and another": "ab", "by three": "abc", "back and forth": "aba",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, w *world) {
				site := w.site(lab.SiteOptions{})
				w.proxy(lab.ProxyOptions{})
				in := input(w.get(site.URL("/ok/1")), 1)
				procs := map[rune]*activities.Activities{'a': w.process("a"), 'b': w.process("b"), 'c': w.process("c")}
				out := fetched(t, procs['a'], in)
				for _, p := range by {
					must(t, doFinish(t, procs[p], finishing(in, out)))
				}
				r := w.record()
				if r.State != crawl.Completed || r.Status != 200 || r.SHA256 == "" || r.Body == nil || r.Headers["content-type"] == "" || r.ContentType != "text/html" {
					t.Errorf("record %+v", r)
				}
				w.noLeases()
				proxies, err := w.pool.Proxies(t.Context())
				must(t, err)
				if p := proxies[0]; p.Successes != 1 || p.InUse != 0 {
					t.Errorf("proxy %+v, want one sample", p)
				}
				c := w.counts()
				if c.Completed != 1 || c.Running != 0 || c.Bytes != out.Bytes || c.Retries != 0 {
					t.Errorf("counts %+v", c)
				}
			})
		})
	}
}

// ackless fails the first acks.
type ackless struct {
	activities.Frontier
	left *atomic.Int64
}

func (f ackless) AckOn(ctx context.Context, p redis.Pipeliner, run string, a frontier.Ack) func(context.Context) (frontier.Acked, error) {
	if f.left.Add(-1) >= 0 {
		return func(context.Context) (frontier.Acked, error) { return frontier.Acked{}, errors.New("redis is away") }
	}
	return f.Frontier.AckOn(ctx, p, run, a)
}

func TestAFinishThatFailedAtItsAckIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"a", "b"} {
		t.Run("on worker "+next, func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, w *world) {
				site := w.site(lab.SiteOptions{})
				in := input(w.get(site.URL("/ok/1")), 1)
				var left atomic.Int64
				left.Store(1)
				w.change = func(c *activities.Config) { c.Frontier = ackless{w.frontier, &left} }
				procs := map[string]*activities.Activities{"a": w.process("a"), "b": w.process("b")}
				out := fetched(t, procs["a"], in)
				if err := doFinish(t, procs["a"], finishing(in, out)); err == nil {
					t.Fatal("the ack was lost and nobody says so")
				}
				w.noLeases() // the release is not held up by the ack
				must(t, doFinish(t, procs[next], finishing(in, out)))
				if c := w.counts(); c.Completed != 1 || c.Bytes != out.Bytes {
					t.Errorf("counts %+v", c)
				}
				if next == "b" {
					// b could not know of a's line; a finds it by itself.
					if n := len(w.lines()); n != 2 {
						t.Fatalf("%d lines before they are settled", n)
					}
					must(t, activities.SettleNow(t.Context(), procs["a"]))
					must(t, activities.SettleNow(t.Context(), procs["b"]))
				}
				if r := w.record(); r.State != crawl.Completed {
					t.Errorf("record %+v", r)
				}
			})
		})
	}
}

func TestARecordOfAPageThatAnotherProcessFetchedIsWhole(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		site := w.site(lab.SiteOptions{})
		in := input(w.get(site.URL("/redirect/9")), 1)
		out := fetched(t, w.process("a"), in)
		must(t, doFinish(t, w.process("b"), finishing(in, out)))
		r := w.record()
		if len(r.Redirects) != 3 || r.Redirects[0].Status != 301 || !strings.HasSuffix(r.FinalURL, "/ok/9") || r.Headers["content-type"] == "" || r.Body == nil {
			t.Errorf("record %+v", r)
		}
	})
}

// fullDisk is a sink that takes no record.
type fullDisk struct{ activities.Sink }

func (fullDisk) Append(context.Context, crawl.Record) (string, error) {
	return "", errors.New("no space left on device")
}

func TestAFullDiskHoldsNoLeaseBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	site := w.site(lab.SiteOptions{})
	w.proxy(lab.ProxyOptions{})
	in := input(w.get(site.URL("/ok/1")), 1)
	out := fetched(t, w.process("a"), in)
	w.change = func(c *activities.Config) { c.Sink = fullDisk{c.Sink} }
	if err := doFinish(t, w.process("b"), finishing(in, out)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error %v", err)
	}
	w.noLeases()
	if c := w.counts(); c.Running != 1 {
		t.Errorf("counts %+v: a URL without its record has not ended", c)
	}
	w.change = nil
	must(t, doFinish(t, w.process("c"), finishing(in, out)))
	if r := w.record(); r.SHA256 == "" || r.Body == nil {
		t.Errorf("record %+v", r)
	}
}

func TestADeferralIsParkedThoughThereIsNothingToRelease(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		site := w.site(lab.SiteOptions{})
		task := w.get(site.URL("/ok/1"))
		must(t, w.pool.CloseHost(t.Context(), task.Host, 30*time.Second))
		a, in := w.process("a"), input(task, 1)
		out := fetched(t, a, in)
		if out.Class != crawl.Deferred || out.Why != crawl.WaitNotBefore {
			t.Fatalf("outcome %+v", out)
		}
		f := finishing(in, out)
		must(t, doFinish(t, a, f))
		must(t, doFinish(t, a, f))
		if c := w.counts(); c.Waiting != 1 || c.Running != 0 || c.Waits != 1 {
			t.Errorf("counts %+v, want one that waits", c)
		}
		if n := site.Total(); n != 0 {
			t.Errorf("the site was asked %d times", n)
		}
	})
}

// fullStore takes no body.
type fullStore struct{ activities.Sink }

func (fullStore) NewBody(context.Context, string, int) (results.Body, error) {
	return nil, errors.New("no space left on device")
}

func TestABodyThatCannotBeStoredWaitsForTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	site := w.site(lab.SiteOptions{})
	w.change = func(c *activities.Config) { c.Sink = fullStore{c.Sink} }
	in := input(w.get(site.URL("/ok/1")), 1)
	a := w.process("a")
	out := fetched(t, a, in)
	if out.Class != crawl.Deferred || out.Why != crawl.WaitStore {
		t.Fatalf("outcome %+v", out)
	}
	must(t, doFinish(t, a, finishing(in, out)))
	w.noLeases()
	if n := len(w.lines()); n != 0 {
		t.Errorf("%d records", n)
	}
}

func TestWhatIsCommittedStaysSmallWhateverTheServerSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.spec.Results.Headers = []string{"etag", "server", "content-type"}
	var srv string
	handler := func(rw http.ResponseWriter, r *http.Request) {
		if n := len(r.URL.Path); n < 10 {
			http.Redirect(rw, r, srv+r.URL.Path+"x?"+strings.Repeat("q&", 3500), http.StatusFound)
			return
		}
		rw.Header().Set("Etag", strings.Repeat(`\"`, 60_000))
		rw.Header().Set("Server", strings.Repeat("s", 60_000))
		_, _ = rw.Write([]byte("page"))
	}
	srv = w.server(handler).URL
	in := input(w.get(srv+"/"), 1)
	if out := fetched(t, w.process("a"), in); out.Class != crawl.OK {
		t.Fatalf("outcome %+v", out)
	}
	blob, err := w.pool.Committed(t.Context(), in.LeaseID)
	must(t, err)
	if len(blob) == 0 || len(blob) > activities.MaxCommitted {
		t.Errorf("%d bytes committed, at most %d are allowed", len(blob), activities.MaxCommitted)
	}
}
