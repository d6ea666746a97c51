package proxypool_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

const (
	hammerProcesses = 8
	hammerClaimants = 4 // in each process
	hammerProxies   = 10
	hammerPerProxy  = 2
	hammerHosts     = 5
	hammerPerHost   = 3
	hammerTTL       = 2 * time.Second
)

// realRedis starts a Redis of its own if one is installed, else uses the one that
// HOLDFAST_TEST_REDIS names, else skips.
func realRedis(t *testing.T) *redis.Options {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		addr := os.Getenv("HOLDFAST_TEST_REDIS")
		if addr == "" {
			t.Skip("no redis-server is installed and HOLDFAST_TEST_REDIS names none")
		}
		return clientOptions(t, addr)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	eventually(t, 20*time.Second, "Redis answers", func() bool { return rdb.Ping(t.Context()).Err() == nil })
	return &redis.Options{Addr: addr}
}

func eventually(t *testing.T, within time.Duration, what string, is func() bool) {
	t.Helper()
	end := time.Now().Add(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", within, what)
		}
		<-tick.C
	}
}

// hammerPool is the same pool in every process.
func hammerPool(addr, prefix string) (*proxypool.Pool, *redis.Client) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	return proxypool.New(rdb, proxypool.Options{Prefix: prefix, TTL: hammerTTL}), rdb
}

// TestHammerProcess is one of the processes that TestProcessesThatDie starts.
func TestHammerProcess(t *testing.T) {
	addr := os.Getenv("HOLDFAST_HAMMER_REDIS")
	if addr == "" {
		t.Skip("run by TestProcessesThatDieLeaveNothingAndNeverOverrun")
	}
	pool, rdb := hammerPool(addr, os.Getenv("HOLDFAST_HAMMER_PREFIX"))
	defer func() { _ = rdb.Close() }()
	f, err := os.OpenFile(os.Getenv("HOLDFAST_HAMMER_HISTORY"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range hammerClaimants {
		all.Go(func() { hammer(t, pool, f, fmt.Sprintf("%s/%d", filepath.Base(f.Name()), i)) })
	}
	all.Wait()
}

// hammer leases and releases until it is killed. What it writes down is the time
// for which it surely held the lease: from the answer on, to before the release
// or the lease's deadline.
func hammer(t *testing.T, pool *proxypool.Pool, history *os.File, name string) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(os.Getpid())))
	pause := func(d time.Duration) { <-time.After(d) }
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s/%d", name, n)
		got, err := pool.Acquire(ctx, proxypool.AcquireRequest{
			LeaseID: id, Holder: name, Claimant: id, Host: fmt.Sprintf("host%d:80", rng.IntN(hammerHosts)),
			Limits: proxypool.HostLimits{Concurrency: hammerPerHost}, Seed: rng.Uint64(),
			Selector: proxypool.Selector{Avoid: []string{"p03"}},
		})
		if err != nil {
			t.Error(err)
			return
		}
		if got.Grant == nil {
			pause(time.Duration(1+rng.IntN(20)) * time.Millisecond)
			continue
		}
		g := got.Grant
		fmt.Fprintf(history, "start %s %s %s %d %d\n", id, g.Proxy.ID, g.Host, time.Now().UnixNano(), time.Now().Add(time.Until(g.Deadline)).UnixNano())
		pause(time.Duration(2+rng.IntN(30)) * time.Millisecond)
		v := []crawl.ProxyVerdict{crawl.ProxySuccess, crawl.ProxySuccess, crawl.ProxyNeutral, crawl.ProxyUnclear}[rng.IntN(4)]
		fmt.Fprintf(history, "end %s %d\n", id, time.Now().UnixNano())
		if _, err := pool.Release(ctx, proxypool.ReleaseRequest{LeaseID: id, Verdict: crawl.Verdict{Proxy: v, Pair: crawl.PairPassed}}); err != nil {
			t.Error(err)
			return
		}
	}
}

// hold is the time for which a lease was held, by one process' own account.
type hold struct {
	proxy, host string
	from, to    int64
}

// readHistory reads what a process wrote down until it was killed.
func readHistory(t *testing.T, path string, killed int64) []hold {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // killed before it had begun
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	open, order := map[string]*hold{}, []*hold{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		var id, proxy, host string
		var at, deadline int64
		if n, _ := fmt.Sscanf(sc.Text(), "start %s %s %s %d %d", &id, &proxy, &host, &at, &deadline); n == 5 {
			h := &hold{proxy: proxy, host: host, from: at, to: min(deadline, killed)}
			open[id], order = h, append(order, h)
		} else if n, _ := fmt.Sscanf(sc.Text(), "end %s %d", &id, &at); n == 2 && open[id] != nil {
			open[id].to = min(open[id].to, at)
		}
	}
	out := make([]hold, 0, len(order))
	for _, h := range order {
		if h.to > h.from {
			out = append(out, *h)
		}
	}
	return out
}

// most returns how many holds of one thing there were at once, at most.
func most(holds []hold, of func(hold) string) map[string]int {
	type edge struct {
		at   int64
		by   int
		name string
	}
	var edges []edge
	for _, h := range holds {
		edges = append(edges, edge{h.from, 1, of(h)}, edge{h.to, -1, of(h)})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, top := map[string]int{}, map[string]int{}
	for _, e := range edges {
		now[e.name] += e.by
		top[e.name] = max(top[e.name], now[e.name])
	}
	return top
}

// hammerer is a running process and where it writes.
type hammerer struct {
	cmd     *exec.Cmd
	history string
	out     *strings.Builder
}

func TestProcessesThatDieLeaveNothingAndNeverOverrun(t *testing.T) {
	if os.Getenv("HOLDFAST_HAMMER_REDIS") != "" {
		t.Skip("this is one of the processes")
	}
	t.Parallel()
	addr := realRedis(t).Addr
	prefix := fmt.Sprintf("hammer:{%d}:", time.Now().UnixNano())
	pool, rdb := hammerPool(addr, prefix)
	b := &bundle{Pool: pool, tb: t, ctx: t.Context(), rdb: rdb, opts: proxypool.Options{Prefix: prefix}}
	t.Cleanup(func() { _ = rdb.Close() })
	b.proxies(hammerProxies, proxypool.ImportOptions{MaxConcurrency: hammerPerProxy})

	exe, err := os.Executable()
	b.ok(err)
	dir, started := t.TempDir(), 0
	start := func() *hammerer {
		started++
		h := &hammerer{history: filepath.Join(dir, fmt.Sprintf("process%d", started)), out: &strings.Builder{}}
		h.cmd = exec.Command(exe, "-test.run=^TestHammerProcess$", "-test.timeout=5m")
		h.cmd.Env = append(os.Environ(), "HOLDFAST_HAMMER_REDIS="+addr, "HOLDFAST_HAMMER_PREFIX="+prefix, "HOLDFAST_HAMMER_HISTORY="+h.history)
		h.cmd.Stdout, h.cmd.Stderr = h.out, h.out
		b.ok(h.cmd.Start())
		return h
	}
	var holds []hold
	kill := func(h *hammerer) {
		killErr := h.cmd.Process.Signal(syscall.SIGKILL)
		_ = h.cmd.Wait()
		if killErr != nil {
			t.Errorf("a process ended by itself:\n%s", h.out)
		}
		holds = append(holds, readHistory(t, h.history, time.Now().UnixNano())...)
	}
	running := make([]*hammerer, hammerProcesses)
	for i := range running {
		running[i] = start()
	}
	lasts := 5 * time.Second
	if os.Getenv("HOLDFAST_TEST_FULL") == "1" {
		lasts = 30 * time.Second
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		<-time.After(time.Duration(200+rng.IntN(400)) * time.Millisecond)
		i := rng.IntN(hammerProcesses)
		kill(running[i])
		running[i] = start()
	}
	for _, h := range running {
		kill(h)
	}
	left := b.open()
	eventually(t, hammerTTL+10*time.Second, "no lease is left after TTL and reaper", func() bool {
		_, err := b.Reap(b.ctx)
		b.ok(err)
		return b.open() == 0
	})
	proxies, hosts := most(holds, func(h hold) string { return h.proxy }), most(holds, func(h hold) string { return h.host })
	t.Logf("%d leases by %d processes, %d of them open when the last were killed; at once at most %v and %v", len(holds), started, left, proxies, hosts)
	for id, n := range proxies {
		if n > hammerPerProxy {
			t.Errorf("%s was held %d times at once, over %d", id, n, hammerPerProxy)
		}
	}
	for host, n := range hosts {
		if n > hammerPerHost {
			t.Errorf("%s was held %d times at once, over %d", host, n, hammerPerHost)
		}
	}
	if len(holds) < 50 || left == 0 || len(hosts) < hammerHosts {
		t.Errorf("%d leases, %d left open by the killed: this has tried nothing", len(holds), left)
	}
	infos, err := b.Proxies(b.ctx)
	b.ok(err)
	for _, info := range infos {
		if info.InUse != 0 {
			t.Errorf("%s says it is in use %d times", info.ID, info.InUse)
		}
	}
	all, err := b.Hosts(b.ctx)
	b.ok(err)
	for _, h := range all {
		if h.Open != 0 {
			t.Errorf("%s says %d are open", h.Host, h.Open)
		}
	}
}
