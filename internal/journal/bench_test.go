package journal_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/internal/journal"
)

func BenchmarkCalls(b *testing.B) {
	ctx := context.Background()
	script := redis.NewScript(pair)
	calls := map[string]func(c *redis.Client, i int) error{
		"set": func(c *redis.Client, i int) error { return c.HSet(ctx, "h", i%1000, i).Err() },
		"get": func(c *redis.Client, i int) error { return c.HGet(ctx, "h", "1").Err() },
		"eval": func(c *redis.Client, i int) error {
			return script.Run(ctx, c, []string{"p", fmt.Sprint("l", i%100)}, i).Err()
		},
		"pipeline of 50": func(c *redis.Client, i int) error {
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
				for n := range 50 {
					p.HSet(ctx, "h", n, i)
				}
				return nil
			})
			return err
		},
	}
	for name, call := range calls {
		for kind, addr := range map[string]func(b *testing.B) string{
			"journal": func(b *testing.B) string { return open(b, b.TempDir(), journal.Options{}).Addr() },
			"plain":   func(b *testing.B) string { return miniredis.RunT(b).Addr() },
		} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				c := dial(b, addr(b))
				c.HSet(ctx, "h", "1", "1")
				i := 0
				for b.Loop() {
					i++
					if err := call(c, i); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}

func fill(tb testing.TB, c *redis.Client, n int) {
	tb.Helper()
	ctx := context.Background()
	for i := 0; i < n; i += 500 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for j := i; j < i+500; j++ {
				p.HSet(ctx, "urls", fmt.Sprintf("%064d", j), fmt.Sprintf("https://example.org/a/page/%d?with=query|queued|1", j))
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkRestore100kFields(b *testing.B) {
	for name, clean := range map[string]bool{"from the journal": false, "from a snapshot": true} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			s := open(b, dir, journal.Options{CompactEvery: 1 << 30})
			fill(b, dial(b, s.Addr()), 100_000)
			if clean {
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				b.StopTimer()
				again := copyDir(b, dir)
				b.StartTimer()
				r, err := journal.Open(again, journal.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				r.Close()
				os.RemoveAll(again)
				b.StartTimer()
			}
		})
	}
}

func BenchmarkSnapshot100kFields(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := open(b, b.TempDir(), journal.Options{CompactEvery: 1 << 30})
		fill(b, dial(b, s.Addr()), 100_000)
		b.StartTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAHundredThousandFieldsAreBackInFiveSeconds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, open(t, dir, journal.Options{}).Addr())
	fill(t, c, 100_000)
	s := open(t, copyDir(t, dir), journal.Options{})
	r := s.Restored()
	if r.Took > 5*time.Second {
		t.Errorf("restored in %v", r.Took)
	}
	if n := dial(t, s.Addr()).HLen(deadlined(t), "urls").Val(); n != 100_000 {
		t.Errorf("%d fields are back", n)
	}
	t.Logf("%d records replayed after the snapshot, in %v", r.Records, r.Took.Round(time.Millisecond))
}
