package proxypool_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

func TestAProxyIsNeverOverItsConcurrency(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(1, proxypool.ImportOptions{MaxConcurrency: 2})
		b.granted(ask("a", proxied))
		b.granted(ask("b", proxied))
		b.waits(ask("c", proxied), crawl.WaitProxyBusy)
		b.release("a", crawl.ProxySuccess, "")
		b.granted(ask("c", proxied))
	})
}

func TestAProxyRestsBetweenGrants(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(1, proxypool.ImportOptions{MinReuse: 500 * time.Millisecond})
		b.granted(ask("a", proxied))
		b.release("a", crawl.ProxySuccess, "")
		after := b.waits(ask("b", proxied), crawl.WaitProxyBusy)
		if !b.near(after, 500*time.Millisecond) {
			t.Errorf("wait %s, want the rest of 500 ms", after)
		}
		b.pass(after)
		b.granted(ask("b", proxied))
	})
}

func TestEqualProxiesShareTheLeases(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.proxies(4, proxypool.ImportOptions{})
		used := map[string]int{}
		for i := range 200 {
			g := b.granted(ask(fmt.Sprint(i), proxied, seed(i)))
			used[g.Proxy.ID]++
			b.release(g.LeaseID, crawl.ProxySuccess, crawl.PairPassed)
			b.pass(3 * time.Millisecond)
		}
		for _, id := range []string{"p01", "p02", "p03", "p04"} {
			if used[id] < 35 || used[id] > 65 {
				t.Errorf("used %v of 200, want about fifty times each", used)
			}
		}
	})
}

func TestAnIllProxyIsAskedLessOften(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.proxies(2, proxypool.ImportOptions{})
	used := map[string]int{}
	for i := range 150 {
		g := b.granted(ask(fmt.Sprint(i), proxied))
		used[g.Proxy.ID]++
		v := crawl.ProxySuccess
		if g.Proxy.ID == "p02" && used["p02"]%2 == 0 {
			v = crawl.ProxyFailure
		}
		b.release(g.LeaseID, v, "")
		b.pass(31 * time.Second) // past its cooling
	}
	if used["p02"] >= used["p01"]*3/4 || used["p02"] == 0 {
		t.Errorf("used %v, want the one that fails half the time clearly less", used)
	}
}

func TestAvoidedProxiesAreTakenOnlyWhenNoOtherIs(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.proxies(3, proxypool.ImportOptions{})
		for i := range 5 {
			g := b.granted(ask(fmt.Sprint("n", i), avoid("p01", "p03")))
			if g.Proxy.ID != "p02" {
				t.Errorf("got %s, want p02", g.Proxy.ID)
			}
			b.release(g.LeaseID, crawl.ProxySuccess, "")
		}
		b.granted(ask("holds p02", avoid("p01", "p03")))
		b.waits(ask("patient", avoid("p01", "p03")), crawl.WaitProxyBusy) // p02 frees soon
		if g := b.granted(ask("none else", avoid("p01", "p02", "p03"))); g.Proxy.ID == "p02" {
			t.Error("granted a proxy in use")
		}
		b.pass(10 * time.Second)
		b.granted(ask("patience is over", avoid("p01", "p03")))
	})
}

func TestSelectorsFilterByTagRegionAndScheme(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		list := []proxypool.Entry{
			{Proxy: crawl.Proxy{Scheme: "http", Host: "a", Port: 1, Region: "de", Tags: []string{"fast", "dc"}}},
			{Proxy: crawl.Proxy{Scheme: "socks5", Host: "b", Port: 1, Region: "de", Tags: []string{"fast"}}},
			{Proxy: crawl.Proxy{Scheme: "http", Host: "c", Port: 1, Region: "us", Tags: []string{"fast", "home"}}},
		}
		_, err := b.Import(b.ctx, list, proxypool.ImportOptions{})
		b.ok(err)
		for name, c := range map[string]struct {
			sel  proxypool.Selector
			want string
		}{
			"tag":              {proxypool.Selector{Tags: []string{"home"}}, "p03"},
			"two tags":         {proxypool.Selector{Tags: []string{"fast", "dc"}}, "p01"},
			"region and tag":   {proxypool.Selector{Region: "us", Tags: []string{"fast"}}, "p03"},
			"scheme":           {proxypool.Selector{Schemes: []string{"socks5", "socks5h"}}, "p02"},
			"region + scheme":  {proxypool.Selector{Region: "de", Schemes: []string{"http"}}, "p01"},
			"unknown tag":      {proxypool.Selector{Tags: []string{"fas"}}, ""},
			"contradiction":    {proxypool.Selector{Tags: []string{"home"}, Region: "de"}, ""},
			"unknown region":   {proxypool.Selector{Region: "fr"}, ""},
			"scheme not there": {proxypool.Selector{Schemes: []string{"https"}}, ""},
		} {
			r := ask(name, func(r *proxypool.AcquireRequest) { r.Selector = c.sel })
			if c.want == "" {
				b.waits(r, crawl.WaitNoProxy)
				continue
			}
			if g := b.granted(r); g.Proxy.ID != c.want {
				t.Errorf("%s: got %s, want %s", name, g.Proxy.ID, c.want)
			}
			b.release(name, crawl.ProxySuccess, "")
		}
	})
}

func TestNoProxyIsToldFromBusyProxies(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		if after := b.waits(ask("a", proxied), crawl.WaitNoProxy); after != 30*time.Second {
			t.Errorf("wait %s, want the default of 30 s", after)
		}
		ids := b.proxies(2, proxypool.ImportOptions{})
		b.ok(b.Quarantine(b.ctx, ids[0]))
		b.ok(b.Drain(b.ctx, ids[1]))
		b.waits(ask("a", proxied), crawl.WaitNoProxy)
		b.ok(b.Restore(b.ctx, ids[0]))
		b.granted(ask("a", proxied))
		b.waits(ask("b", proxied), crawl.WaitProxyBusy)
	})
}

func TestNoLeaseOutlivesItsProxy(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		now := b.clock()
		b.proxies(1, proxypool.ImportOptions{Expires: now.Add(1900 * time.Millisecond)})
		b.granted(ask("a", proxied))
		b.release("a", crawl.ProxySuccess, "")
		b.pass(time.Second)
		b.waits(ask("b", proxied), crawl.WaitNoProxy) // 900 ms are less than a ttl
		b.pass(time.Second)
		if s := b.info("p01").State; s != proxypool.StateExpired {
			t.Errorf("state %s, want expired", s)
		}
	})
}

func TestOneFreeProxyAmongManyIsFound(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		const n = 120
		b.proxies(n, proxypool.ImportOptions{})
		for i := range n {
			b.granted(ask(fmt.Sprint("l", i), proxied, func(r *proxypool.AcquireRequest) { r.Seed = uint64(i) * 77777 }))
		}
		b.waits(ask("one more", proxied), crawl.WaitProxyBusy)
		b.release("l77", crawl.ProxySuccess, "")
		b.granted(ask("one more", proxied))
	})
}
