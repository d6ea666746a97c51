package proxypool_test

import (
	"strings"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// setField overwrites one field of a packed value.
func (b *bundle) setField(key, name string, field int, value string) {
	b.tb.Helper()
	k := b.keysOf(key)[0]
	packed, err := b.rdb.HGet(b.ctx, k, name).Result()
	b.ok(err)
	f := strings.Split(packed, "|")
	f[field] = value
	b.ok(b.rdb.HSet(b.ctx, k, name, strings.Join(f, "|")).Err())
}

func TestReconcileCountsAgainWhatIsInUse(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.proxies(3, proxypool.ImportOptions{MaxConcurrency: 4})
		a := b.granted(ask("a", proxied)).Proxy.ID
		b.granted(ask("b", proxied, at("other:80")))
		b.granted(ask("c"))
		if n, err := b.Reconcile(b.ctx); err != nil || n != 0 {
			t.Errorf("nothing is wrong: %d put right, %v", n, err)
		}
		b.setField("proxies", a, 1, "4")
		b.setField("hosts", "h:80", 5, "0")
		b.setField("hosts", "other:80", 5, "7")
		if n, err := b.Reconcile(b.ctx); err != nil || n != 3 {
			t.Errorf("%d put right, %v; want 3", n, err)
		}
		inUse := 0
		infos, err := b.Proxies(b.ctx)
		b.ok(err)
		for _, info := range infos {
			inUse += info.InUse
		}
		if h, o := b.host("h:80").Open, b.host("other:80").Open; inUse != 2 || h != 2 || o != 1 {
			t.Errorf("in use %d, open %d and %d; want 2, 2 and 1", inUse, h, o)
		}
		for _, id := range []string{"a", "b", "c"} {
			b.release(id, crawl.ProxySuccess, "")
		}
		if h, o, used := b.host("h:80").Open, b.host("other:80").Open, b.info(a).InUse; h+o+used != 0 {
			t.Errorf("after the releases: open %d and %d, in use %d", h, o, used)
		}
	})
}

func TestReconcileFreesARemovedProxyThatNobodyUses(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.proxies(1, proxypool.ImportOptions{})
		b.setField("proxies", "p01", 1, "1")
		b.ok(b.Remove(b.ctx, "p01"))
		if n, err := b.Reconcile(b.ctx); err != nil || n != 1 {
			t.Errorf("%d put right, %v; want 1", n, err)
		}
		if infos, err := b.Proxies(b.ctx); err != nil || len(infos) != 0 {
			t.Errorf("%d proxies left, %v", len(infos), err)
		}
	})
}

func TestReconcileMendsTheIndexOfDeadlinesBothWays(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		key := b.keysOf("deadlines")[0]
		b.granted(ask("lost"))
		b.ok(b.rdb.Del(b.ctx, key).Err())
		b.ok(b.rdb.RPush(b.ctx, key, "1 ghost", "1 another ghost").Err())
		if n, err := b.Reconcile(b.ctx); err != nil || n != 1 {
			t.Errorf("%d put right, %v; want 1", n, err)
		}
		entries, err := b.rdb.LRange(b.ctx, key, 0, -1).Result()
		b.ok(err)
		if len(entries) != 1 || !strings.HasSuffix(entries[0], " lost") {
			t.Errorf("entries %q, want that of the lease alone", entries)
		}
		b.pass(b.Options().TTL)
		if n, err := b.Reap(b.ctx); err != nil || n != 1 {
			t.Errorf("%d reaped, %v; want 1", n, err)
		}
	})
}
