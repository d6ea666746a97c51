package proxypool_test

import (
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// BenchmarkAcquireRelease measures pairs of calls by one client, with 50 hosts
// and an avoid list. server-µs/op is the time of both in Redis itself, which
// other programs on the machine disturb least; miniredis is part of cpu-µs/op.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, backend := range []struct {
		name string
		make func(testing.TB, proxypool.Options) *bundle
	}{{"miniredis", onMini}, {"redis", onReal}} {
		for _, n := range []int{0, 100, 1000, 10_000, 100_000} {
			if n > 1000 && backend.name == "miniredis" {
				continue
			}
			b.Run(fmt.Sprintf("%s/proxies=%d", backend.name, n), func(b *testing.B) {
				bu := backend.make(b, proxypool.Options{})
				if n > 0 {
					bu.proxies(n, proxypool.ImportOptions{Tags: []string{"a", "b"}})
				}
				i := 0
				before, used := bu.scriptTime(), cpuTime()
				for b.Loop() {
					i++
					bu.granted(proxypool.AcquireRequest{
						LeaseID: fmt.Sprint("bench/", i), Holder: "h", Claimant: fmt.Sprint(i), Host: fmt.Sprintf("h%d:80", i%50),
						Limits: proxypool.HostLimits{Concurrency: 2}, Seed: uint64(i) * 2654435761,
						Selector: proxypool.Selector{Direct: n == 0, Avoid: []string{"p01", "p07"}},
					})
					v := crawl.ProxySuccess
					if i%20 == 0 {
						v = crawl.ProxyUnclear
					}
					bu.release(fmt.Sprint("bench/", i), v, crawl.PairPassed)
					if bu.mini != nil {
						bu.pass(time.Millisecond)
					}
				}
				b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/op")
				if bu.mini == nil {
					b.ReportMetric(float64((bu.scriptTime()-before).Microseconds())/float64(b.N), "server-µs/op")
				}
			})
		}
	}
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var scriptUsec = regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`)

// scriptTime is the time that a real Redis has spent in scripts.
func (b *bundle) scriptTime() time.Duration {
	if b.mini != nil {
		return 0
	}
	info, err := b.rdb.Info(b.ctx, "commandstats").Result()
	b.ok(err)
	m := scriptUsec.FindStringSubmatch(info)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	b.ok(err)
	return time.Duration(n) * time.Microsecond
}
