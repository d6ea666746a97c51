package proxypool_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// world is what proxies and hosts are really like; the pool sees verdicts alone.
type world struct {
	b   *bundle
	rng *rand.Rand

	dying, slow      map[string]bool
	failing, picky   map[string]bool
	blocked          map[string]bool // "proxy host"
	hosts            []string
	leases           map[string]int // by proxy, until it was quarantined
	visits           map[string]int // blocks by pair
	apart            map[string]bool
	first            map[string]int // a dying proxy's leases until its first cooling
	grants, unclears int
	pace             time.Duration // a lease takes one to three of it
}

const (
	worldProxies = 100
	worldHosts   = 50
)

func newWorld(b *bundle, seed uint64) *world {
	w := &world{
		b: b, rng: rand.New(rand.NewPCG(seed, 1)),
		dying: map[string]bool{}, slow: map[string]bool{}, failing: map[string]bool{}, picky: map[string]bool{},
		blocked: map[string]bool{}, leases: map[string]int{}, visits: map[string]int{}, first: map[string]int{}, apart: map[string]bool{},
	}
	ids := b.proxies(worldProxies, proxypool.ImportOptions{MaxConcurrency: 2})
	mixed := slices.Clone(ids)
	w.rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for i := range 10 {
		w.dying[mixed[i]], w.slow[mixed[10+i]] = true, true
	}
	for i := range worldHosts {
		host := fmt.Sprintf("host%d.example:443", i)
		w.hosts = append(w.hosts, host)
		w.failing[host] = i < 5
		w.picky[host] = i >= 5 && i < 10
		for _, id := range ids {
			if w.picky[host] && w.rng.IntN(100) < 30 {
				w.blocked[id+" "+host] = true
			}
		}
	}
	return w
}

// verdict is what an exchange would have shown. A dying proxy and a failing host
// time out nineteen times in twenty, a slow proxy once in ten, everybody once in
// a hundred; a host blocks one request in fifty of those that it does not block.
func (w *world) verdict(id, host string) crawl.Verdict {
	chance := func(percent int) bool { return w.rng.IntN(100) < percent }
	v := crawl.Verdict{Proxy: crawl.ProxySuccess, Pair: crawl.PairPassed, LatencyMS: 100 + int64(w.rng.IntN(200))}
	if w.slow[id] {
		v.LatencyMS = 3000 + int64(w.rng.IntN(3000))
	}
	switch {
	case w.dying[id] && chance(95), w.failing[host] && chance(95), w.slow[id] && chance(10), chance(1):
		w.unclears++
		return crawl.Verdict{Proxy: crawl.ProxyUnclear, Reason: crawl.ReasonTimeout, LatencyMS: v.LatencyMS}
	case w.blocked[id+" "+host], w.picky[host] && chance(2):
		w.visits[id+" "+host]++
		return crawl.Verdict{Proxy: crawl.ProxyNeutral, Pair: crawl.PairBlocked, Reason: crawl.ReasonBlocked}
	}
	return v
}

// lease takes one lease, at a picky host every other time, and says what came of it.
func (w *world) lease(t *testing.T, n int) {
	host := w.hosts[w.rng.IntN(worldHosts)]
	if n%2 == 0 {
		host = w.hosts[5+w.rng.IntN(5)]
	}
	id := fmt.Sprint("l", n)
	r := ask(id, proxied, at(host))
	r.Seed = w.rng.Uint64()
	g := w.b.granted(r)
	p := g.Proxy.ID
	w.grants++
	w.leases[p]++
	w.b.pass(time.Duration(1+w.rng.IntN(3)) * w.pace)
	_, err := w.b.Release(w.b.ctx, proxypool.ReleaseRequest{LeaseID: id, Verdict: w.verdict(p, host)})
	w.b.ok(err)
	if w.dying[p] && w.first[p] == 0 && w.b.info(p).Failures > 0 {
		w.first[p] = w.leases[p]
	}
}

// cooled notes the pairs that the pool keeps apart or kept apart within the hour.
func (w *world) cooled() {
	w.b.tb.Helper()
	all, err := w.b.rdb.HGetAll(w.b.ctx, w.b.keysOf("pairs")[0]).Result()
	w.b.ok(err)
	for key, packed := range all {
		if strings.Split(packed, "|")[1] == "h" {
			w.apart[key] = true
		}
	}
}

// found reports whether all dying proxies are quarantined, asked now and then.
func (w *world) found() bool {
	if w.grants%50 != 0 {
		return false
	}
	for id := range w.dying {
		if w.b.info(id).State != proxypool.StateQuarantined {
			return false
		}
	}
	return true
}

// score is precision and recall of what was found against what there is.
func score(found, there map[string]bool) (precision, recall float64) {
	hits := 0
	for k := range found {
		if there[k] {
			hits++
		}
	}
	return float64(hits) / float64(max(len(found), 1)), float64(hits) / float64(max(len(there), 1))
}

func TestBlameFallsWhereTheEvidencePoints(t *testing.T) {
	t.Parallel()
	world := uint64(3)
	if s := os.Getenv("HOLDFAST_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		world = n
	}
	w := newWorld(onMini(t, proxypool.Options{}), world)
	for n := 0; n < 3000 || n < 6000 && !w.found(); n++ {
		// The second part is slower: proxies that cool for half an hour come back in it.
		w.pace = time.Second
		if n >= 2000 {
			w.pace = 5 * time.Second
		}
		w.lease(t, n)
		if n%250 == 249 {
			w.cooled()
		}
	}
	quarantined, failed := map[string]bool{}, 0
	infos, err := w.b.Proxies(w.b.ctx)
	w.b.ok(err)
	share := map[bool]int{}
	for _, p := range infos {
		switch {
		case p.State == proxypool.StateQuarantined:
			quarantined[p.ID] = true
			if !w.dying[p.ID] {
				t.Errorf("%s was quarantined and is not dying: %+v", p.ID, p)
			}
		case w.dying[p.ID]:
			t.Logf("%s is dying and %s: %+v", p.ID, p.State, p)
		case !w.slow[p.ID]:
			failed += int(p.Failures)
		}
		share[w.slow[p.ID]] += w.leases[p.ID]
	}
	most := 0
	for id := range w.dying {
		most = max(most, w.leases[id])
		if w.first[id] == 0 || w.leases[id] > 20 {
			t.Errorf("%s is dying: cooled first after %d leases, %d in all; want it found within 20", id, w.first[id], w.leases[id])
		}
	}
	precision, recall := score(quarantined, w.dying)
	t.Logf("%d leases, %d unclear, %s simulated", w.grants, w.unclears, w.b.now.Sub(time.UnixMilli(1_800_000_000_000)))
	t.Logf("quarantine: precision %.2f, recall %.2f; a dying proxy had at most %d leases", precision, recall, most)
	t.Logf("unclear faults blamed on the 80 healthy proxies: %d; leases of a slow one %d, of another %d on average",
		failed, share[true]/10, share[false]/90)
	if precision < 1 || recall < 1 {
		t.Errorf("quarantine: precision %.2f, recall %.2f", precision, recall)
	}
	tried := map[string]bool{}
	for pair, n := range w.visits {
		if n >= 3 && w.blocked[pair] {
			tried[pair] = true
		}
	}
	precision, _ = score(w.apart, w.blocked)
	_, recall = score(w.apart, tried)
	t.Logf("pair cooldown: precision %.2f of %d, recall %.2f of the %d pairs blocked at least three times", precision, len(w.apart), recall, len(tried))
	if precision < 0.95 || recall < 0.9 || len(tried) < 20 {
		t.Errorf("pair cooldown: precision %.2f, recall %.2f of %d", precision, recall, len(tried))
	}
}
