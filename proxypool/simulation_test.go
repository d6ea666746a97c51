package proxypool_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// event is something that a simulated crawl does at a time.
type event struct {
	at  time.Time
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// crawlSim crawls one host on a clock of its own: `inFlight` claimants at a time,
// each fetch takes 80 to 300 ms, timers fire up to `late` after they are due.
type crawlSim struct {
	b        *bundle
	rng      *rand.Rand
	queue    events
	seq      int
	urls     int
	inFlight int
	interval time.Duration
	late     time.Duration
	limits   int
	careless bool // claims whatever the host's next turn is

	next, done, grants, deferrals, calls int
	open, maxOpen                        int
	lastGrant, notBefore                 time.Time
	throttleAt                           int
}

func (s *crawlSim) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.queue, event{at: s.b.now.Add(d), seq: s.seq, do: do})
}

func (s *crawlSim) run(t *testing.T) {
	for range s.inFlight {
		s.claim(t)
	}
	for s.queue.Len() > 0 {
		e := heap.Pop(&s.queue).(event)
		s.b.pass(e.at.Sub(s.b.now))
		e.do()
	}
	if s.done != s.urls {
		t.Fatalf("%d of %d done", s.done, s.urls)
	}
}

func (s *crawlSim) claim(t *testing.T) {
	if s.next == s.urls {
		return
	}
	// The feeder claims for a host only if its next turn is under 10 s away.
	turns, err := s.b.Turns(s.b.ctx, []string{"h:80"})
	s.b.ok(err)
	if turns[0] > 10*time.Second && !s.careless {
		s.after(turns[0]-10*time.Second, func() { s.claim(t) })
		return
	}
	n := s.next
	s.next++
	s.pass(t, n, 1)
}

// pass is one execution of Fetch: it waits in place up to 2 s, else it defers.
func (s *crawlSim) pass(t *testing.T, url, pass int) {
	s.calls++
	lease := fmt.Sprintf("u%d/%d", url, pass)
	a, err := s.b.Acquire(s.b.ctx, proxypool.AcquireRequest{
		LeaseID: lease, Holder: lease, Claimant: fmt.Sprint("u", url), Host: "h:80", Seed: s.rng.Uint64(),
		Limits:   proxypool.HostLimits{Interval: s.interval, Concurrency: s.limits},
		Selector: proxypool.Selector{Direct: true},
	})
	s.b.ok(err)
	if a.Wait != nil {
		late := time.Duration(s.rng.Int64N(3)) * time.Millisecond
		if a.Wait.After > 2*time.Second {
			s.deferrals++
			s.b.release(lease, crawl.ProxyNeutral, "")
			pass++
			late = time.Duration(s.rng.Int64N(int64(s.late/time.Millisecond)+1)) * time.Millisecond
		}
		s.after(a.Wait.After+late, func() { s.pass(t, url, pass) })
		return
	}
	if a.Grant == nil {
		t.Fatalf("%s: %s", lease, show(a))
	}
	s.granted(t)
	s.after(time.Duration(80+s.rng.IntN(220))*time.Millisecond, func() { s.answer(t, url, pass, lease) })
}

func (s *crawlSim) granted(t *testing.T) {
	now := s.b.now
	if now.Before(s.notBefore) {
		t.Errorf("granted %s before the Retry-After was over", s.notBefore.Sub(now))
	}
	if d := now.Sub(s.lastGrant); d < s.interval {
		t.Errorf("granted %s after the grant before, under the interval of %s", d, s.interval)
	}
	s.lastGrant = now
	s.grants++
	s.open++
	s.maxOpen = max(s.maxOpen, s.open)
	if s.open > s.limits {
		t.Errorf("%d open at the host, over %d", s.open, s.limits)
	}
}

func (s *crawlSim) answer(t *testing.T, url, pass int, lease string) {
	s.open--
	if s.grants >= s.throttleAt && s.throttleAt > 0 {
		s.throttleAt = 0
		s.notBefore = s.b.now.Add(30 * time.Second)
		s.b.ok(s.b.CloseHost(s.b.ctx, "h:80", 30*time.Second))
		s.b.release(lease, crawl.ProxySuccess, crawl.PairThrottled)
		s.deferrals++ // its own wait
		s.after(30*time.Second, func() { s.pass(t, url, pass+1) })
		return
	}
	s.b.release(lease, crawl.ProxySuccess, crawl.PairPassed)
	s.done++
	s.claim(t)
}

func TestAThousandURLsOfOneHostWithARetryAfterInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{10 * time.Millisecond, 2 * time.Second} {
		t.Run("timers late by up to "+late.String(), func(t *testing.T) {
			t.Parallel()
			s := &crawlSim{
				b: onMini(t, proxypool.Options{}), rng: rand.New(rand.NewPCG(1, uint64(late))),
				urls: 1000, inFlight: 20, interval: 100 * time.Millisecond, limits: 20, late: late, throttleAt: 500,
			}
			start := s.b.now
			s.run(t)
			per := float64(s.deferrals) / float64(s.urls)
			took := s.b.now.Sub(start)
			t.Logf("%d deferrals (%.3f a URL), %d calls, %s", s.deferrals, per, s.calls, took)
			if per > 1.2 {
				t.Errorf("%.2f deferrals a URL, want at most 1.2", per)
			}
			if limit := 1000*s.interval + 30*time.Second + 15*time.Second; took > limit {
				t.Errorf("took %s, want at most %s: the host's turns are wasted", took, limit)
			}
			if s.calls > 6*s.urls {
				t.Errorf("%d calls for %d URLs: a herd", s.calls, s.urls)
			}
		})
	}
}

func TestAHostLimitedByItsConcurrencyIsNeitherOverrunNorStarved(t *testing.T) {
	t.Parallel()
	s := &crawlSim{
		b: onMini(t, proxypool.Options{}), rng: rand.New(rand.NewPCG(2, 3)),
		urls: 300, inFlight: 4, interval: 10 * time.Millisecond, limits: 2, late: 10 * time.Millisecond, throttleAt: 150,
	}
	start := s.b.now
	s.run(t)
	took := s.b.now.Sub(start)
	t.Logf("%d deferrals, %d calls, %s", s.deferrals, s.calls, took)
	// 300 fetches of 190 ms, two at a time, are 28.5 s; a slot may stay free for
	// up to the poll of 250 ms.
	if limit := 30*time.Second + 75*time.Second; took > limit {
		t.Errorf("took %s, want at most %s", took, limit)
	}
	if s.maxOpen != 2 {
		t.Errorf("at most %d open, want 2 to have been used", s.maxOpen)
	}
}

func TestManyURLsThatWaitAtOnceComeBackOneByOne(t *testing.T) {
	t.Parallel()
	// Everybody waits at once, as after a restart without a feeder's care.
	s := &crawlSim{
		b: onMini(t, proxypool.Options{}), rng: rand.New(rand.NewPCG(4, 5)),
		urls: 300, inFlight: 300, interval: 100 * time.Millisecond, limits: 20, late: 500 * time.Millisecond, careless: true,
	}
	start := s.b.now
	s.run(t)
	took := s.b.now.Sub(start)
	t.Logf("%d deferrals, %d calls, %s", s.deferrals, s.calls, took)
	if s.deferrals > s.urls*12/10 {
		t.Errorf("%d deferrals for %d URLs, want at most 1.2 each", s.deferrals, s.urls)
	}
	if limit := 300*s.interval + 5*time.Second; took > limit {
		t.Errorf("took %s, want at most %s", took, limit)
	}
}
