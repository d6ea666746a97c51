package results_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/results"
)

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{2, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			l := open(b, b.TempDir(), results.LocalOptions{})
			var next atomic.Int64
			b.SetParallelism((n + 1) / 2)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					mustAppend(b, l, record(int(next.Add(1)), crawl.Completed))
				}
			})
			b.ReportMetric(float64(l.Stats().Records)/float64(l.Stats().Syncs), "records/sync")
		})
	}
}

func BenchmarkBody20kB(b *testing.B) {
	l := open(b, b.TempDir(), results.LocalOptions{})
	data := noise(20_000, 1)
	var next atomic.Uint64
	b.SetBytes(int64(len(data)))
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			own := append([]byte(fmt.Sprint(next.Add(1))), data...)
			store(b, l, own, 4096)
		}
	})
}
