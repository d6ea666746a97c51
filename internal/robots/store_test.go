package robots_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/internal/robots"
)

const origin = "https://example.org:443"

// forEachRedis runs f on miniredis and, where one is installed, on a real Redis.
// forward moves the clock of the first and is nil for the second.
func forEachRedis(t *testing.T, f func(t *testing.T, rdb redis.UniversalClient, forward func(time.Duration))) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		m := miniredis.RunT(t)
		now := time.Now()
		m.SetTime(now)
		rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		// SetTime moves TIME alone: no key's TTL runs, the stored deadlines must do.
		f(t, rdb, func(d time.Duration) { now = now.Add(d); m.SetTime(now) })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		f(t, realRedis(t), nil)
	})
}

func realRedis(t *testing.T) redis.UniversalClient {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	cmd := exec.Command(bin, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })
	deadline := time.Now().Add(10 * time.Second)
	for rdb.Ping(t.Context()).Err() != nil {
		if time.Now().After(deadline) {
			t.Fatal("redis-server does not answer")
		}
	}
	return rdb
}

func TestAnEntryIsKeptForItsTimeAndItsCrawler(t *testing.T) {
	t.Parallel()
	forEachRedis(t, func(t *testing.T, rdb redis.UniversalClient, forward func(time.Duration)) {
		ctx := t.Context()
		s := robots.NewStore(rdb, "holdfast/1 (+x)")
		if _, ok, err := s.Get(ctx, origin); ok || err != nil {
			t.Fatalf("an empty store answers %v, %v", ok, err)
		}
		if err := s.Put(ctx, origin, judge("User-agent: *\nDisallow: /p\nCrawl-delay: 3"), robots.TTL); err != nil {
			t.Fatal(err)
		}
		e, ok, err := s.Get(ctx, origin)
		if err != nil || !ok || e.Allowed("/p") || !e.Allowed("/") {
			t.Fatalf("got %+v, %v, %v", e, ok, err)
		}
		if e.Left <= robots.TTL-time.Minute || e.Left > robots.TTL {
			t.Errorf("left %v", e.Left)
		}
		if _, ok, _ := robots.NewStore(rdb, "other/1").Get(ctx, origin); ok {
			t.Error("another crawler's group was taken for its own")
		}
		if _, ok, _ := robots.NewStore(rdb, "HOLDFAST/2").Get(ctx, origin); !ok {
			t.Error("another version of the crawler asks again")
		}
		if ttl := rdb.PTTL(ctx, "hf1:robots:entry:holdfast:"+origin).Val(); ttl <= 0 || ttl > robots.TTL {
			t.Errorf("the key lives for %v", ttl)
		}
		if forward == nil {
			return
		}
		forward(robots.TTL - time.Second)
		if _, ok, _ := s.Get(ctx, origin); !ok {
			t.Error("gone before its time")
		}
		forward(time.Second)
		if _, ok, _ := s.Get(ctx, origin); ok {
			t.Error("kept past its time")
		}
	})
}

func TestOneHolderAtATimeHasTheLock(t *testing.T) {
	t.Parallel()
	forEachRedis(t, func(t *testing.T, rdb redis.UniversalClient, forward func(time.Duration)) {
		ctx := t.Context()
		s := robots.NewStore(rdb, "holdfast")
		lock := func(holder string, want bool) {
			t.Helper()
			if got, err := s.Lock(ctx, origin, holder, 45*time.Second); got != want || err != nil {
				t.Errorf("lock by %s: %v, %v, want %v", holder, got, err, want)
			}
		}
		unlock := func(holder string) {
			t.Helper()
			if err := s.Unlock(ctx, origin, holder); err != nil {
				t.Error(err)
			}
		}
		lock("a", true)
		lock("a", true) // its reply was lost
		lock("b", false)
		unlock("b") // not its own
		lock("b", false)
		unlock("a")
		unlock("a")
		lock("b", true)
		if forward == nil {
			return
		}
		forward(44 * time.Second)
		lock("a", false)
		forward(time.Second)
		lock("a", true) // b died
		unlock("b")     // and comes back
		lock("c", false)
	})
}

func TestManyPassesOneLock(t *testing.T) {
	t.Parallel()
	forEachRedis(t, func(t *testing.T, rdb redis.UniversalClient, _ func(time.Duration)) {
		s := robots.NewStore(rdb, "holdfast")
		got := make(chan bool, 20)
		for i := range 20 {
			go func() {
				ok, err := s.Lock(context.Background(), origin, fmt.Sprint(i), time.Minute)
				got <- ok && err == nil
			}()
		}
		n := 0
		for range 20 {
			if <-got {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d holders", n)
		}
	})
}

func TestRedisAwayIsAnError(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	m.Close()
	s := robots.NewStore(rdb, "holdfast")
	if _, _, err := s.Get(t.Context(), origin); err == nil {
		t.Error("get answers")
	}
	if _, err := s.Lock(t.Context(), origin, "a", time.Second); err == nil {
		t.Error("lock answers")
	}
	if err := s.Put(t.Context(), origin, robots.Entry{Access: robots.Open}, time.Second); err == nil {
		t.Error("put answers")
	}
}
