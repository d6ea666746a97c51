package frontier_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// bundle is a store on one backend, with keys of its own.
type bundle struct {
	*frontier.Store
	t      testing.TB
	rdb    redis.UniversalClient
	mini   *miniredis.Miniredis // nil on a real Redis
	prefix string
}

func onMiniredis(t testing.TB) *bundle {
	t.Helper()
	m := miniredis.RunT(t)
	return newBundle(t, redis.NewClient(&redis.Options{Addr: m.Addr()}), m)
}

// onRedis skips unless HOLDFAST_TEST_REDIS names a Redis: "redis://127.0.0.1:6379/0"
// or "127.0.0.1:6379"; several addresses with commas are a cluster's.
func onRedis(t testing.TB) *bundle {
	t.Helper()
	addr := os.Getenv("HOLDFAST_TEST_REDIS")
	if addr == "" {
		t.Skip("HOLDFAST_TEST_REDIS names no Redis")
	}
	if strings.Contains(addr, ",") {
		return newBundle(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(addr, ",")}), nil)
	}
	if !strings.Contains(addr, "://") {
		addr = "redis://" + addr
	}
	opts, err := redis.ParseURL(addr)
	if err != nil {
		t.Fatalf("HOLDFAST_TEST_REDIS: %v", err)
	}
	return newBundle(t, redis.NewClient(opts), nil)
}

func newBundle(t testing.TB, rdb redis.UniversalClient, m *miniredis.Miniredis) *bundle {
	b := &bundle{t: t, rdb: rdb, mini: m, prefix: fmt.Sprintf("hft%d", rand.Uint64())}
	b.Store = frontier.New(rdb, frontier.Options{Prefix: b.prefix})
	t.Cleanup(func() {
		if m == nil {
			b.deleteAll(t)
		}
		_ = rdb.Close()
	})
	return b
}

func (b *bundle) deleteAll(t testing.TB) {
	ctx := context.Background()
	for _, k := range b.keys(t) {
		if err := b.rdb.Del(ctx, k).Err(); err != nil {
			t.Errorf("delete %s: %v", k, err)
		}
	}
}

// keys lists the store's keys on every node.
func (b *bundle) keys(t testing.TB) []string {
	ctx := context.Background()
	var keys []string
	scan := func(ctx context.Context, c *redis.Client) error {
		it := c.Scan(ctx, 0, b.prefix+":*", 1000).Iterator()
		for it.Next(ctx) {
			keys = append(keys, it.Val())
		}
		return it.Err()
	}
	var err error
	switch c := b.rdb.(type) {
	case *redis.ClusterClient:
		for _, addr := range strings.Split(os.Getenv("HOLDFAST_TEST_REDIS"), ",") {
			one := redis.NewClient(&redis.Options{Addr: addr})
			if e := scan(ctx, one); e != nil {
				err = e
			}
			_ = one.Close()
		}
	case *redis.Client:
		err = scan(ctx, c)
	}
	if err != nil {
		t.Errorf("list keys: %v", err)
	}
	return keys
}

// everywhere runs a test on each backend.
func everywhere(t *testing.T, f func(t *testing.T, b *bundle)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); f(t, onMiniredis(t)) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); f(t, onRedis(t)) })
}

func spec(name string) crawl.Spec {
	s := crawl.DefaultSpec()
	s.Name = name
	return s
}

var input = frontier.Source{Digest: "d1", Label: "urls.txt", Total: 3}

// start creates a sealed run "docs-1" with these URLs and a feeder number 1.
func (b *bundle) start(t testing.TB, urls ...string) string {
	t.Helper()
	ctx := context.Background()
	info, _, err := b.CreateRun(ctx, spec("docs"), input, frontier.CreateOptions{NewRun: true})
	must(t, err)
	run := info.Name()
	must(t, b.TakeOver(ctx, run, 1))
	if len(urls) > 0 {
		_, err = b.AddBatch(ctx, run, 1, entries(t, urls...))
		must(t, err)
	}
	must(t, b.Seal(ctx, run))
	return run
}

func entries(t testing.TB, urls ...string) []frontier.Entry {
	t.Helper()
	out := make([]frontier.Entry, len(urls))
	for i, u := range urls {
		e, err := frontier.NewEntry(crawl.Request{URL: u}, 0, "")
		must(t, err)
		out[i] = e
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// claim claims up to n URLs of each host as feeder 1.
func (b *bundle) claim(t testing.TB, run string, n int, hosts ...string) []frontier.Claim {
	t.Helper()
	var quotas []frontier.HostQuota
	for _, h := range hosts {
		quotas = append(quotas, frontier.HostQuota{Host: h, N: n})
	}
	claims, err := b.Claim(context.Background(), run, 1, quotas)
	must(t, err)
	return claims
}

// counts returns the run's counts and checks that they add up.
func (b *bundle) counts(t testing.TB, run string) frontier.Counts {
	t.Helper()
	c, err := b.Counts(context.Background(), run)
	must(t, err)
	if sum := c.Queued + c.Running + c.Waiting + c.Done(); sum != c.Accepted {
		t.Fatalf("counts do not add up to accepted: %+v", c)
	}
	return c
}

func urls(host string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("http://%s/%d", host, i)
	}
	return out
}
