package proxypool_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// usage is what some keys take of Redis, all their fields counted.
func (b *bundle) usage(keys ...string) int64 {
	b.tb.Helper()
	var sum int64
	for _, key := range b.keysOf(keys...) {
		n, err := b.rdb.MemoryUsage(b.ctx, key, 0).Result()
		if err != nil && err != redis.Nil {
			b.tb.Fatal(err)
		}
		sum += n
	}
	return sum
}

// The bounds are those that doc.go states.
func TestMemoryStaysWithinWhatIsStated(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(realRedis(t))
	t.Cleanup(func() { _ = rdb.Close() })
	prefix := fmt.Sprintf("memory:{%s}:", t.Name())
	opts := proxypool.Options{Prefix: prefix}
	b := &bundle{Pool: proxypool.New(rdb, opts), tb: t, ctx: t.Context(), rdb: rdb, opts: opts}
	const proxies, hosts = 200, 8
	records := []string{"proxies", "config", "index", "idents"}

	b.proxies(proxies, proxypool.ImportOptions{Region: "de", Tags: []string{"datacenter", "vendor-a"}, Source: "vendor-a.txt"})
	fresh := b.usage(records...) / proxies
	for h := range hosts {
		name := func(i int) string { return fmt.Sprintf("crawl-1/0123456789abcdef/%d/%d", h, i) }
		host := at(fmt.Sprintf("shop%d.example.org:443", h))
		for i := range proxies {
			b.granted(ask(name(i), proxied, host, seed(h*proxies+i)))
		}
		for i := range proxies {
			b.release(name(i), crawl.ProxySuccess, crawl.PairBlocked)
		}
	}
	s, err := b.Stats(b.ctx)
	b.ok(err)
	if s.Pairs != proxies*hosts || s.Hosts != hosts {
		t.Fatalf("%d pairs and %d hosts, want %d and %d", s.Pairs, s.Hosts, proxies*hosts, hosts)
	}
	for _, c := range []struct {
		what    string
		bytes   int64
		atMost  int64
		atLeast int64 // less means that the test has measured nothing
	}{
		{"a new proxy with two tags and a region", fresh, 1100, 400},
		{"a proxy in use", b.usage(records...) / proxies, 1300, 600},
		{"a (proxy, host) pair", b.usage("pairs", "pairq") / int64(s.Pairs), 200, 80},
		{"a host", b.usage("hosts", "hostq") / hosts, 400, 100},
		{"a tombstone without an outcome", b.usage("tombs", "tombq") / int64(s.Tombstones), 200, 60},
	} {
		t.Logf("%s takes %d bytes", c.what, c.bytes)
		if c.bytes > c.atMost || c.bytes < c.atLeast {
			t.Errorf("%s takes %d bytes, want %d to %d", c.what, c.bytes, c.atLeast, c.atMost)
		}
	}
}
