package frontier_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// lossy is a TCP proxy before a Redis that loses a reply on demand: the command has
// run, and the client sees its connection closed.
type lossy struct {
	ln       net.Listener
	upstream string
	lose     atomic.Bool
	lost     atomic.Int64
	wg       sync.WaitGroup
}

func newLossy(t *testing.T, upstream string) *lossy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &lossy{ln: ln, upstream: upstream}
	l.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.serve(c) })
		}
	})
	return l
}

func (l *lossy) serve(c net.Conn) {
	up, err := net.Dial("tcp", l.upstream)
	if err != nil {
		_ = c.Close()
		return
	}
	l.wg.Go(func() {
		_, _ = io.Copy(up, c)
		_ = up.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := up.Read(buf)
		if n > 0 && l.lose.CompareAndSwap(true, false) {
			l.lost.Add(1)
			break
		}
		if n > 0 {
			_, _ = c.Write(buf[:n])
		}
		if err != nil {
			break
		}
	}
	_ = c.Close()
	_ = up.Close()
}

// lossyBundle is a store whose client talks through a lossy proxy.
func lossyBundle(t *testing.T, upstream string, m *miniredis.Miniredis) (*bundle, *lossy) {
	l := newLossy(t, upstream)
	t.Cleanup(func() {
		_ = l.ln.Close()
		l.wg.Wait()
	})
	rdb := redis.NewClient(&redis.Options{Addr: l.ln.Addr().String(), MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 2 * time.Millisecond})
	return newBundle(t, rdb, m), l
}

func TestALostReplyChangesNothing(t *testing.T) {
	t.Parallel()
	backends := map[string]func(t *testing.T) (*bundle, *lossy){
		"miniredis": func(t *testing.T) (*bundle, *lossy) {
			m := miniredis.RunT(t)
			return lossyBundle(t, m.Addr(), m)
		},
		"redis": func(t *testing.T) (*bundle, *lossy) {
			rdb, ok := onRedis(t).rdb.(*redis.Client)
			if !ok {
				t.Skip("a cluster's nodes name their own addresses")
			}
			return lossyBundle(t, rdb.Options().Addr, nil)
		},
	}
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, l := backend(t)
			lostReplies(t, b, l)
		})
	}
}

func lostReplies(t *testing.T, b *bundle, l *lossy) {
	ctx := context.Background()
	losses := int64(0)
	// once runs f with its first reply lost, and checks that one was.
	once := func(f func() error) {
		t.Helper()
		l.lose.Store(true)
		must(t, f())
		if losses++; l.lost.Load() != losses {
			t.Fatalf("%d replies lost, want %d", l.lost.Load(), losses)
		}
	}
	// Load the scripts first, so that the reply lost is that of the script itself.
	warm := b.start(t, "http://warm.example/")
	c := b.claim(t, warm, 1, "warm.example:80")[0]
	_, _ = b.Peek(ctx, warm, 1)
	must(t, b.Requeue(ctx, warm, c.ID, c.Epoch))
	must(t, b.Park(ctx, warm, frontier.Parked{ID: c.ID}))
	_, err := b.Ack(ctx, warm, frontier.Ack{ID: c.ID, State: crawl.Completed})
	must(t, err)
	_, err = b.SkipQueued(ctx, warm, "x", 1)
	must(t, err)
	_, err = b.FinishIfIdle(ctx, warm)
	must(t, err)

	const run = "docs-2"
	once(func() error {
		info, _, err := b.CreateRun(ctx, spec("docs"), input, frontier.CreateOptions{NewRun: true})
		if err == nil && info.Name() != run {
			t.Errorf("created %s", info.Name())
		}
		return err
	})
	once(func() error { return b.TakeOver(ctx, run, 1) })
	es := entries(t, urls("a.example", 6)...)
	once(func() error {
		got, err := b.AddBatch(ctx, run, 1, es[:3])
		if got.Added != 3 {
			t.Errorf("batch: %+v", got)
		}
		return err
	})
	once(func() error {
		got, err := b.Add(ctx, run, es[3:])
		if got.Added != 3 {
			t.Errorf("add: %+v", got)
		}
		return err
	})
	var claims []frontier.Claim
	once(func() (err error) {
		claims, err = b.Claim(ctx, run, 1, []frontier.HostQuota{{Host: "a.example:80", N: 3}})
		return err
	})
	if n := b.counts(t, run); len(claims) != 3 || n.Running != 3 {
		t.Fatalf("%d claims, %+v", len(claims), n)
	}
	once(func() error {
		return b.Park(ctx, run, frontier.Parked{ID: claims[0].ID, Why: crawl.WaitBackoff, Wait: time.Hour})
	})
	once(func() error { return b.Requeue(ctx, run, claims[1].ID, claims[1].Epoch) })
	once(func() error {
		got, err := b.Ack(ctx, run, frontier.Ack{ID: claims[2].ID, State: crawl.Failed, Reason: "http_404", File: "f1", Bytes: 7})
		if got.File != "f1" {
			t.Errorf("ack: %+v", got)
		}
		return err
	})
	want := frontier.Counts{Accepted: 6, Queued: 4, Waiting: 1, Failed: 1, Bytes: 7, Waits: 1}
	if n := b.counts(t, run); n != want {
		t.Fatalf("counts %+v, want %+v", n, want)
	}
	once(func() error { return b.Cancel(ctx, run) })
	once(func() error {
		got, err := b.SkipQueued(ctx, run, crawl.ReasonSkippedCanceled, 4)
		if len(got) != 4 {
			t.Errorf("%d skipped", len(got))
		}
		return err
	})
	_, err = b.Ack(ctx, run, frontier.Ack{ID: claims[0].ID, State: crawl.StateCanceled})
	must(t, err)
	once(func() error {
		over, err := b.FinishIfIdle(ctx, run)
		if !over {
			t.Error("not over")
		}
		return err
	})
	if f, err := b.Failures(ctx, run, 0, 10); err != nil || len(f) != 1 {
		t.Errorf("failures: %+v, %v", f, err)
	}
}

func TestAClaimThatNobodyHeardOfIsFoundAndGivenBack(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	b, l := lossyBundle(t, m.Addr(), m)
	run := b.start(t, urls("a.example", 3)...)
	// A client without retries: the feeder never learns of its claims.
	rdb := redis.NewClient(&redis.Options{Addr: l.ln.Addr().String(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	deaf := frontier.New(rdb, frontier.Options{Prefix: b.prefix})
	// Loads the script and opens the connection: the reply lost is the claim's own.
	b.claim(t, run, 0, "a.example:80")
	_, err := deaf.Sink(context.Background())
	must(t, err)
	l.lose.Store(true)
	if _, err := deaf.Claim(context.Background(), run, 1, []frontier.HostQuota{{Host: "a.example:80", N: 3}}); err == nil {
		t.Fatal("the claim was heard")
	}
	if n := b.counts(t, run); n.Running != 3 {
		t.Fatalf("counts: %+v", n)
	}
	open, _, err := b.OpenClaims(context.Background(), run, "", 10)
	must(t, err)
	if len(open) != 3 {
		t.Fatalf("%d open claims", len(open))
	}
	for _, c := range open {
		if c.RunID != "" {
			t.Errorf("started: %+v", c)
		}
		must(t, b.Requeue(context.Background(), run, c.ID, c.Epoch))
	}
	if got := b.claim(t, run, 9, "a.example:80"); len(got) != 3 || got[0].Epoch <= 3 {
		t.Errorf("claims: %+v", got)
	}
}

func TestAURLsBytesAreBounded(t *testing.T) {
	t.Parallel()
	const n = 3000
	// Bytes of Redis 7 a URL of 60 bytes, keys and lists of the run included; the
	// package's doc states them.
	const maxQueued, maxEnded = 430, 300
	check := func(t *testing.T, b *bundle, size func() int64) {
		ctx := context.Background()
		run := b.start(t)
		pages := urls("a-host-of-usual-length.example.org/section/and/page", n)
		for i := 0; i < n; i += frontier.BatchSize {
			_, err := b.Add(ctx, run, entries(t, pages[i:i+frontier.BatchSize]...))
			must(t, err)
		}
		queued := size() / n
		for range n / frontier.BatchSize {
			for _, c := range b.claim(t, run, n, "a-host-of-usual-length.example.org:80") {
				_, err := b.Ack(ctx, run, frontier.Ack{ID: c.ID, State: crawl.Completed, File: "pages-w1-0001.jsonl", Proxy: "p17", Bytes: 1})
				must(t, err)
			}
		}
		ended := size() / n
		t.Logf("%d bytes a queued URL, %d an ended one", queued, ended)
		if queued > maxQueued || ended > maxEnded {
			t.Errorf("%d bytes a queued URL, bound %d; %d an ended one, bound %d", queued, maxQueued, ended, maxEnded)
		}
	}
	t.Run("miniredis, sum of strings", func(t *testing.T) {
		t.Parallel()
		b := onMiniredis(t)
		check(t, b, func() (sum int64) {
			for _, k := range b.keys(t) {
				switch b.mini.Type(k) {
				case "hash":
					fields, err := b.mini.HKeys(k)
					must(t, err)
					for _, f := range fields {
						sum += int64(len(f) + len(b.mini.HGet(k, f)))
					}
				case "list":
					l, err := b.mini.List(k)
					must(t, err)
					for _, v := range l {
						sum += int64(len(v))
					}
				}
			}
			return sum
		})
	})
	t.Run("redis, MEMORY USAGE", func(t *testing.T) {
		t.Parallel()
		b := onRedis(t)
		check(t, b, func() (sum int64) {
			for _, k := range b.keys(t) {
				size, err := b.rdb.MemoryUsage(context.Background(), k, 0).Result()
				must(t, err)
				sum += size
			}
			return sum
		})
	})
}

func BenchmarkClaimAndAck(b *testing.B) {
	for name, backend := range map[string]func(testing.TB) *bundle{"miniredis": onMiniredis, "redis": onRedis} {
		if name == "redis" && os.Getenv("HOLDFAST_TEST_REDIS") == "" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			s := backend(b)
			ctx := context.Background()
			run := s.start(b)
			all := urls("a.example", b.N)
			for len(all) > 0 {
				n := min(len(all), frontier.BatchSize)
				_, err := s.Add(ctx, run, entries(b, all[:n]...))
				must(b, err)
				all = all[n:]
			}
			b.ResetTimer()
			for left := b.N; left > 0; {
				claims := s.claim(b, run, 16, "a.example:80")
				for _, c := range claims {
					_, err := s.Ack(ctx, run, frontier.Ack{ID: c.ID, State: crawl.Completed, File: "f", Bytes: 1})
					must(b, err)
				}
				left -= len(claims)
			}
		})
	}
}
