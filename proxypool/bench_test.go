package proxypool_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

func BenchmarkAcquireRelease(b *testing.B) {
	for _, backend := range []struct {
		name string
		make func(testing.TB, proxypool.Options) *bundle
	}{{"miniredis", onMini}, {"redis", onReal}} {
		for _, n := range []int{0, 20, 2000} {
			b.Run(fmt.Sprintf("%s/proxies=%d", backend.name, n), func(b *testing.B) {
				bu := backend.make(b, proxypool.Options{})
				if n > 0 {
					bu.proxies(n, proxypool.ImportOptions{})
				}
				i := 0
				for b.Loop() {
					i++
					bu.granted(proxypool.AcquireRequest{
						LeaseID: fmt.Sprint("bench/", i), Holder: "h", Claimant: fmt.Sprint(i), Host: fmt.Sprintf("h%d:80", i%50),
						Limits: proxypool.HostLimits{Concurrency: 2}, Selector: proxypool.Selector{Direct: n == 0}, Seed: uint64(i) * 2654435761,
					})
					bu.release(fmt.Sprint("bench/", i), crawl.ProxySuccess, crawl.PairPassed)
					if bu.mini != nil {
						bu.pass(time.Millisecond)
					}
				}
			})
		}
	}
}
