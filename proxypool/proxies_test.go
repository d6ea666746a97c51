package proxypool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

func (b *bundle) load(list string, opts proxypool.ImportOptions) proxypool.ImportReport {
	b.tb.Helper()
	entries, err := proxypool.ParseList(strings.NewReader(list), "proxies.txt", opts)
	b.ok(err)
	rep, err := b.Import(b.ctx, entries, opts)
	b.ok(err)
	return rep
}

func TestImportKeepsIdsAndHealth(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		rep := b.load("u:one@a:1\nb:2\n", proxypool.ImportOptions{Source: "list", Tags: []string{"x"}})
		if rep.Added != 2 || fmt.Sprint(rep.IDs) != "[p01 p02]" {
			t.Errorf("first import: %+v", rep)
		}
		b.ok(b.Drain(b.ctx, "p02"))
		b.lend("l", "h:80", crawl.ProxySuccess, "")
		b.ok(b.Restore(b.ctx, "p02"))
		if rep = b.load("u:one@a:1\nb:2\n", proxypool.ImportOptions{Source: "list", Tags: []string{"x"}}); rep.Unchanged != 2 {
			t.Errorf("the same again: %+v", rep)
		}
		rep = b.load("u:two@a:1\nc:3\n", proxypool.ImportOptions{Source: "list", Tags: []string{"y"}, MaxConcurrency: 3})
		if rep.Updated != 1 || rep.Added != 1 || fmt.Sprint(rep.IDs) != "[p01 p03]" {
			t.Errorf("another password and a new one: %+v", rep)
		}
		info := b.info("p01")
		if info.Successes != 1 || info.MaxConcurrency != 3 || fmt.Sprint(info.Tags) != "[y]" || info.Source != "list" {
			t.Errorf("after the update: %+v", info)
		}
		tagged := func(r *proxypool.AcquireRequest) { proxied(r); r.Selector.Tags = []string{"y"} }
		for i := range 2 {
			g := b.granted(ask(fmt.Sprint("y", i), tagged))
			if g.Proxy.ID == "p01" && g.Proxy.Password != "two" {
				t.Error("the grant has the old password")
			}
		}
		if g := b.granted(ask("x", func(r *proxypool.AcquireRequest) { proxied(r); r.Selector.Tags = []string{"x"} })); g.Proxy.ID != "p02" {
			t.Errorf("tag x gave %s: the index kept an old tag", g.Proxy.ID)
		}
	})
}

func TestSameAddressWithOtherUsersAreDistinctProxies(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		rep := b.load("u1:p@a:1\nu2:p@a:1\nu2:q@a:1\n", proxypool.ImportOptions{})
		if rep.Added != 2 || rep.Repeated != 1 {
			t.Errorf("%+v, want two proxies and one repeated line", rep)
		}
		b.lend("f", "h:80", crawl.ProxyFailure, "")
		cooling := 0
		infos, err := b.Proxies(b.ctx)
		b.ok(err)
		for _, info := range infos {
			if info.State == proxypool.StateCooling {
				cooling++
			}
		}
		if cooling != 1 {
			t.Errorf("%d of two proxies cool, want one", cooling)
		}
	})
}

func TestNewCredentialsEndAQuarantineForOldOnes(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.load("u:wrong@a:1", proxypool.ImportOptions{})
		b.granted(ask("a", proxied))
		_, err := b.Release(b.ctx, proxypool.ReleaseRequest{LeaseID: "a", Verdict: crawl.Verdict{Proxy: crawl.ProxyDenied, Reason: crawl.ReasonProxyAuth}})
		b.ok(err)
		b.load("u:wrong@a:1", proxypool.ImportOptions{})
		b.waits(ask("b", proxied), crawl.WaitNoProxy)
		b.load("u:right@a:1", proxypool.ImportOptions{})
		b.granted(ask("b", proxied))
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.load("u:one@a:1", proxypool.ImportOptions{})
		rep := b.load("u:two@a:1\nb:2", proxypool.ImportOptions{DryRun: true})
		if rep.Added != 1 || rep.Updated != 1 {
			t.Errorf("%+v", rep)
		}
		infos, err := b.Proxies(b.ctx)
		b.ok(err)
		if len(infos) != 1 {
			t.Errorf("%d proxies after a dry run, want 1", len(infos))
		}
		if g := b.granted(ask("a", proxied)); g.Proxy.Password != "one" {
			t.Error("a dry run changed the password")
		}
	})
}

func TestImportIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := onMini(t, quick)
	_, err := b.Import(b.ctx, []proxypool.Entry{
		{Proxy: crawl.Proxy{Scheme: "http", Host: "a", Port: 1}},
		{Proxy: crawl.Proxy{Scheme: "http", Host: "b", Port: 1, Password: "canary-secret", Tags: []string{"a,b"}}, Line: 2},
		{Proxy: crawl.Proxy{Scheme: "gopher", Host: "c", Port: 1}, Line: 3},
	}, proxypool.ImportOptions{})
	if !errors.Is(err, proxypool.ErrRequest) || strings.Contains(err.Error(), "canary") {
		t.Errorf("error %v", err)
	}
	if infos, err := b.Proxies(b.ctx); err != nil || len(infos) != 0 {
		t.Errorf("%d proxies, %v; want none", len(infos), err)
	}
}

func TestAdminNamesUnknownIdsAndChangesNothingThen(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(2, proxypool.ImportOptions{})
		err := b.Quarantine(b.ctx, "p01", "p77")
		if !errors.Is(err, proxypool.ErrNoProxy) || !strings.Contains(err.Error(), "p77") {
			t.Errorf("error %v", err)
		}
		if s := b.info("p01").State; s != proxypool.StateActive {
			t.Errorf("p01 is %s", s)
		}
		if _, err := b.Proxy(b.ctx, "p77"); !errors.Is(err, proxypool.ErrNoProxy) {
			t.Errorf("show p77: %v", err)
		}
	})
}

func TestARemovedProxyGoesWithItsLastLease(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.proxies(2, proxypool.ImportOptions{})
		b.granted(ask("a", avoid("p02")))
		b.ok(b.Remove(b.ctx, "p01", "p02"))
		if s := b.info("p01").State; s != proxypool.StateRemoving {
			t.Errorf("p01 is %s, want removing", s)
		}
		if _, err := b.Proxy(b.ctx, "p02"); !errors.Is(err, proxypool.ErrNoProxy) {
			t.Errorf("p02: %v, want it gone", err)
		}
		// Its own new execution still gets it.
		if g := b.granted(ask("a", proxied, holder("another"))); g.Proxy.ID != "p01" {
			t.Errorf("got %s", g.Proxy.ID)
		}
		b.release("a", crawl.ProxySuccess, "")
		if _, err := b.Proxy(b.ctx, "p01"); !errors.Is(err, proxypool.ErrNoProxy) {
			t.Errorf("p01: %v, want it gone", err)
		}
		b.waits(ask("b", proxied), crawl.WaitNoProxy)
		n, err := b.rdb.Exists(b.ctx, b.keysOf("proxies", "config", "index", "idents")...).Result()
		b.ok(err)
		if n != 0 {
			t.Errorf("%d of its keys are left", n)
		}
		// The id is not given again.
		if ids := b.proxies(1, proxypool.ImportOptions{}); ids[0] != "p03" {
			t.Errorf("a new proxy is %s, want p03", ids[0])
		}
	})
}

func TestLeasesAndStatsShowWhatIsOpen(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.proxies(3, proxypool.ImportOptions{MaxConcurrency: 2})
		g := b.granted(ask("run/1", proxied))
		b.granted(ask("direct"))
		b.ok(b.Abort(b.ctx, "direct"))
		leases, err := b.Leases(b.ctx)
		b.ok(err)
		if len(leases) != 2 || leases[1].ID != "run/1" || leases[1].Fence != g.Fence || leases[1].Proxy != g.Proxy.ID ||
			leases[1].Host != "h:80" || !leases[0].Abort || leases[0].Proxy != "" {
			t.Errorf("%+v", leases)
		}
		if d := leases[0].Deadline.Sub(leases[0].Granted); d != 45*time.Second {
			t.Errorf("deadline %s after the grant", d)
		}
		s, err := b.Stats(b.ctx)
		b.ok(err)
		if s.Leases != 2 || s.Capacity != 6 || s.InUse != 1 || s.Hosts != 1 || s.Proxies[proxypool.StateActive] != 3 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCredentialsArePrintedNowhere(t *testing.T) {
	t.Parallel()
	b := onMini(t, quick)
	const user, secret = "canary-user", "canary-secret"
	entries, err := proxypool.ParseList(strings.NewReader(user+":"+secret+"@a:1"), "f", proxypool.ImportOptions{})
	b.ok(err)
	_, err = b.Import(b.ctx, entries, proxypool.ImportOptions{})
	b.ok(err)
	a, err := b.Acquire(b.ctx, ask("a", proxied))
	b.ok(err)
	if a.Grant.Proxy.Password != secret || a.Grant.Proxy.Username != user {
		t.Fatal("the grant lacks the credentials")
	}
	infos, err := b.Proxies(b.ctx)
	b.ok(err)
	if !infos[0].Auth || infos[0].Address != "a:1" {
		t.Errorf("info %+v", infos[0])
	}
	leases, err := b.Leases(b.ctx)
	b.ok(err)
	for _, v := range []any{entries, entries[0], a, a.Grant, *a.Grant, a.Grant.Proxy, *a.Grant.Proxy, infos, infos[0], leases} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if out := fmt.Sprintf(verb, v); strings.Contains(out, "canary") || strings.Contains(out, "63616e617279") {
				t.Errorf("%T with %s shows a credential", v, verb)
			}
		}
		out, err := json.Marshal(v)
		b.ok(err)
		if strings.Contains(string(out), "canary") {
			t.Errorf("%T in JSON shows a credential", v)
		}
	}
}
