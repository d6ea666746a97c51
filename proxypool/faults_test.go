package proxypool_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

func TestARedisThatLostGrantsStaysClosedForOneTTL(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		b.granted(ask("a"))
		b.granted(ask("b"))
		b.ok(b.rdb.Del(b.ctx, b.keysOf("meta", "leases", "tombs", "hosts", "deadlines")...).Err())

		// A client that has seen no fence cannot know, and closes nothing.
		fresh := b.client()
		a, err := fresh.Acquire(b.ctx, ask("new"))
		b.ok(err)
		if a.Grant == nil {
			t.Fatalf("a new client: %s, want a grant", show(a))
		}
		after := b.waits(ask("c"), crawl.WaitGeneration)
		if !b.near(after, time.Second) {
			t.Errorf("wait %s, want one ttl", after)
		}
		if a, err = fresh.Acquire(b.ctx, ask("new too")); err != nil || a.Wait == nil || a.Wait.Why != crawl.WaitGeneration {
			t.Errorf("while the gate is closed: %s, %v", show(a), err)
		}
		b.pass(after)
		if g := b.granted(ask("c")); g.Fence <= 2 {
			t.Errorf("fence %d, want one above the two that were seen", g.Fence)
		}
	})
}

func TestTheFirstClientOfAnEmptyRedisIsServedAtOnce(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		if g := b.granted(ask("a")); g.Fence != 1 {
			t.Errorf("fence %d, want 1", g.Fence)
		}
	})
}

func TestScriptsThatRedisForgotAreLoadedAgain(t *testing.T) {
	t.Parallel()
	b := onMini(t, quick)
	g := b.granted(ask("a"))
	b.ok(b.rdb.ScriptFlush(b.ctx).Err())
	if _, err := b.Renew(b.ctx, "a", g.Fence); err != nil {
		t.Errorf("renew: %v", err)
	}
	b.ok(b.rdb.ScriptFlush(b.ctx).Err())
	b.release("a", crawl.ProxySuccess, "")
}

func TestAReleaseOnAPipelineRunsAgainByItselfAfterNOSCRIPT(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		for name, run := range map[string]func() redis.Pipeliner{
			"pipeline": b.rdb.Pipeline, "transaction": b.rdb.TxPipeline,
		} {
			if b.mini != nil {
				b.ok(b.rdb.ScriptFlush(b.ctx).Err())
			}
			g := b.granted(ask(name))
			b.ok(b.Commit(b.ctx, name, g.Fence, []byte("page")))
			pipe := run()
			result := b.ReleaseOn(b.ctx, pipe, proxypool.ReleaseRequest{LeaseID: name})
			// The error is NOSCRIPT's where the script was not there yet.
			if _, err := pipe.Exec(b.ctx); err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
				t.Fatal(err)
			}
			rel, err := result(b.ctx)
			b.ok(err)
			if !rel.First || string(rel.Outcome) != "page" {
				t.Errorf("%s: %+v", name, rel)
			}
		}
		if n := b.open(); n != 0 {
			t.Errorf("%d leases open", n)
		}
	})
}

func TestALostDeadlineIndexIsRepaired(t *testing.T) {
	onEach(t, quick, func(t *testing.T, b *bundle) {
		for i := range 5 {
			b.granted(ask(fmt.Sprint("lost", i)))
		}
		b.ok(b.rdb.Del(b.ctx, b.keysOf("deadlines")...).Err())
		b.ok(b.rdb.RPush(b.ctx, b.keysOf("deadlines")[0], "1 orphan").Err())
		b.granted(ask("kept"))
		n, err := b.Reconcile(b.ctx)
		b.ok(err)
		if n != 5 {
			t.Errorf("repaired %d, want 5", n)
		}
		if n, err = b.Reconcile(b.ctx); err != nil || n != 0 {
			t.Errorf("a second time: %d, %v", n, err)
		}
		entries, err := b.rdb.LLen(b.ctx, b.keysOf("deadlines")[0]).Result()
		b.ok(err)
		if entries != 6 {
			t.Errorf("%d entries, want 6: the orphan dropped", entries)
		}
		b.pass(1001 * time.Millisecond)
		if n, err = b.Reap(b.ctx); err != nil || n != 6 {
			t.Errorf("reaped %d, %v; want 6", n, err)
		}
	})
}

func TestARenewalAndTheReaperNeverBothWin(t *testing.T) {
	onEach(t, proxypool.Options{TTL: 60 * time.Millisecond}, func(t *testing.T, b *bundle) {
		for i := range 20 {
			id := fmt.Sprint("race", i)
			g := b.granted(ask(id))
			b.pass(59 * time.Millisecond)
			if b.mini != nil && i%2 == 0 {
				b.pass(time.Millisecond)
			}
			var wg sync.WaitGroup
			var renewed error
			var reaped int
			wg.Go(func() { _, renewed = b.Renew(b.ctx, id, g.Fence) })
			wg.Go(func() { reaped, _ = b.Reap(b.ctx) })
			wg.Wait()
			if renewed == nil && reaped != 0 {
				// On a real clock the renewal may have come first and run out since.
				if _, err := b.Renew(b.ctx, id, g.Fence); err == nil || b.mini != nil {
					t.Fatalf("%s was renewed and reaped", id)
				}
			}
			if renewed != nil && !errors.Is(renewed, proxypool.ErrStale) {
				t.Fatal(renewed)
			}
			b.release(id, crawl.ProxyNeutral, "")
		}
		if h := b.host("h:80"); h.Open != 0 {
			t.Errorf("host has %d open after all", h.Open)
		}
	})
}

func TestManyClientsAtOnceNeverPassTheLimits(t *testing.T) {
	onEach(t, proxypool.Options{}, func(t *testing.T, b *bundle) {
		b.proxies(3, proxypool.ImportOptions{})
		var mu sync.Mutex
		inUse, atHost, grants := map[string]int{}, 0, 0
		var wg sync.WaitGroup
		for c := range 8 {
			pool := b.client()
			wg.Go(func() {
				for i := range 15 {
					id := fmt.Sprint(c, "/", i)
					a, err := pool.Acquire(b.ctx, ask(id, proxied, atMost(2), func(r *proxypool.AcquireRequest) { r.Seed = uint64(c*100 + i) }))
					if err != nil {
						t.Error(err)
						return
					}
					if a.Grant == nil {
						continue
					}
					mu.Lock()
					grants++
					inUse[a.Grant.Proxy.ID]++
					atHost++
					if inUse[a.Grant.Proxy.ID] > 1 || atHost > 2 {
						t.Errorf("%s in use %d times, %d at the host", a.Grant.Proxy.ID, inUse[a.Grant.Proxy.ID], atHost)
					}
					mu.Unlock()
					if _, err := pool.Renew(b.ctx, id, a.Grant.Fence); err != nil {
						t.Error(err)
					}
					mu.Lock()
					inUse[a.Grant.Proxy.ID]--
					atHost--
					mu.Unlock()
					if _, err := pool.Release(b.ctx, proxypool.ReleaseRequest{LeaseID: id, Verdict: crawl.Verdict{Proxy: crawl.ProxySuccess}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if grants == 0 || b.open() != 0 || b.host("h:80").Open != 0 {
			t.Errorf("%d grants, %d leases open, %d at the host", grants, b.open(), b.host("h:80").Open)
		}
		for _, id := range []string{"p01", "p02", "p03"} {
			if n := b.info(id).InUse; n != 0 {
				t.Errorf("%s in use %d", id, n)
			}
		}
	})
}

// keysOf returns the full names of keys.
func (b *bundle) keysOf(names ...string) []string {
	prefix := b.opts.Prefix
	if prefix == "" {
		prefix = proxypool.DefaultPrefix
	}
	keys := make([]string, len(names))
	for i, n := range names {
		keys[i] = prefix + n
	}
	return keys
}
