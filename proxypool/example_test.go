package proxypool_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// One lease from end to end. Any Redis will do in place of the one in the process.
func Example() {
	ctx := context.Background()
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer mini.Close()
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer func() { _ = rdb.Close() }()
	pool := proxypool.New(rdb, proxypool.Options{})

	// A proxy, and a gateway that costs more.
	for tier, list := range []string{"http://user:secret@192.0.2.1:3128", "user-session-{session}:secret@gate.example:7000"} {
		entries, err := proxypool.ParseList(strings.NewReader(list), "proxies.txt", proxypool.ImportOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := pool.Import(ctx, entries, proxypool.ImportOptions{Tier: tier}); err != nil {
			fmt.Println(err)
			return
		}
	}

	request := proxypool.AcquireRequest{
		LeaseID: "crawl-1/page-7/1", Holder: "drawn once by this execution", Claimant: "crawl-1/page-7",
		Host:     "example.org:443",
		Limits:   proxypool.HostLimits{Interval: time.Second, Concurrency: 2},
		Selector: proxypool.Selector{MaxTier: 1},
		Seed:     42,
	}
	got, err := pool.Acquire(ctx, request)
	if err != nil {
		fmt.Println(err)
		return
	}
	if got.Wait != nil {
		fmt.Println("come back in", got.Wait.After, "because of", got.Wait.Why)
		return
	}
	fmt.Println("request", got.Grant.Host, "through", got.Grant.Proxy, "at", got.Grant.Proxy.Addr())

	// The exchange goes here: renew every 15 s, stop at Grant.Deadline.
	if err := pool.Commit(ctx, request.LeaseID, got.Grant.Fence, []byte("200")); err != nil {
		fmt.Println(err)
		return
	}
	released, err := pool.Release(ctx, proxypool.ReleaseRequest{
		LeaseID: request.LeaseID,
		Verdict: crawl.Verdict{Proxy: crawl.ProxySuccess, Pair: crawl.PairPassed, LatencyMS: 80},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("released, committed %q\n", released.Outcome)
	// Output:
	// request example.org:443 through p01 at 192.0.2.1:3128
	// released, committed "200"
}
