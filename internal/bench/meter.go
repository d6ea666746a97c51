package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// usage is what has been spent until a moment.
type usage struct {
	cpu, redisCPU, labCPU          time.Duration
	gcCPU                          float64 // seconds, up to the last cycle
	allocs, allocated              uint64
	commands, trips, sent, receive int64
}

func (b *Bench) usage(ctx context.Context) (usage, error) {
	var u usage
	var err error
	if u.labCPU, err = b.lab.cpu(); err != nil {
		return usage{}, err
	}
	if !b.at.OwnRedis {
		if u.redisCPU, err = redisCPU(ctx, b.at.Redis); err != nil {
			return usage{}, err
		}
	}
	if u.cpu, err = ownCPU(); err != nil {
		return usage{}, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.allocs, u.allocated = m.Mallocs, m.TotalAlloc
	gc := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(gc)
	u.gcCPU = gc[0].Value.Float64()
	c := b.at.Calls
	u.commands, u.trips, u.sent, u.receive = c.commands.Load(), c.trips.Load(), c.sent.Load(), c.received.Load()
	return u, nil
}

// ownCPU is the time that this process has spent, in user and kernel mode.
func ownCPU() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, fmt.Errorf("read own CPU time: %w", err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// redisCPU is the same of a Redis elsewhere, by its own account.
func redisCPU(ctx context.Context, rdb *redis.Client) (time.Duration, error) {
	info, err := rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, fmt.Errorf("read Redis' CPU time: %w", err)
	}
	var sum float64
	for line := range bytes.Lines([]byte(info)) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		switch string(key) {
		case "used_cpu_sys", "used_cpu_user":
			s, err := strconv.ParseFloat(string(value), 64)
			if err != nil {
				return 0, fmt.Errorf("read Redis' CPU time: %w", err)
			}
			sum += s
		}
	}
	return time.Duration(sum * float64(time.Second)), nil
}

// peaks watches the process' memory until its stop is called.
type peaks struct {
	rss  int64
	heap uint64
	quit chan struct{}
	wg   sync.WaitGroup
}

const peakEvery = 250 * time.Millisecond

func watchPeaks() *peaks {
	p := &peaks{quit: make(chan struct{})}
	p.look()
	p.wg.Go(func() {
		tick := time.NewTicker(peakEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.quit:
				return
			case <-tick.C:
				p.look()
			}
		}
	})
	return p
}

func (p *peaks) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p.heap = max(p.heap, m.HeapAlloc)
	p.rss = max(p.rss, residentSet())
}

func (p *peaks) stop() {
	close(p.quit)
	p.wg.Wait()
}

// residentSet is the process' memory in bytes; 0 where the system has no /proc.
func residentSet() int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(raw)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}
