package activities_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"holdfast/activities"
	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
	"holdfast/internal/frontier"
	"holdfast/internal/lab"
	"holdfast/internal/results"
	"holdfast/proxypool"
	"holdfast/workflows"
)

// world is a deployment without Temporal: one Redis, one results folder, one
// campaign run.
type world struct {
	t    *testing.T
	mini *miniredis.Miniredis // nil on a real Redis
	rdb  *redis.Client
	dir  string
	// prefix keeps tests on a shared Redis apart.
	prefix   string
	pool     *proxypool.Pool
	frontier *frontier.Store
	run      string
	spec     crawl.Spec
	// change, if set, alters each process' dependencies.
	change func(*activities.Config)
}

// everywhere runs a test on miniredis and, where HOLDFAST_TEST_REDIS names one, on
// a real Redis.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); test(t, newWorld(t, "")) })
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		addr := os.Getenv("HOLDFAST_TEST_REDIS")
		if addr == "" || strings.Contains(addr, ",") {
			t.Skip("HOLDFAST_TEST_REDIS names no single Redis")
		}
		test(t, newWorld(t, strings.TrimPrefix(addr, "redis://")))
	})
}

func newWorld(t *testing.T, redisAddr string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), prefix: fmt.Sprintf("hft%d", rand.Uint64())}
	if redisAddr == "" {
		w.mini = miniredis.RunT(t)
		redisAddr = w.mini.Addr()
	}
	addr, _, _ := strings.Cut(redisAddr, "/")
	w.rdb = redis.NewClient(&redis.Options{Addr: addr, MaxRetries: 1})
	t.Cleanup(func() { w.clean() })
	w.pool = proxypool.New(w.rdb, proxypool.Options{Prefix: w.prefix + ":{pool}:"})
	w.frontier = frontier.New(w.rdb, frontier.Options{Prefix: w.prefix})
	w.spec = crawl.DefaultSpec()
	w.spec.Name, w.spec.AllowPrivate = "docs", true
	w.spec.Politeness.Delay, w.spec.Politeness.PerHost, w.spec.Politeness.Robots = 0, 0, "ignore"
	w.spec.Proxies.Direct = true
	return w
}

func (w *world) clean() {
	ctx := context.Background()
	if w.mini == nil {
		keys, _ := w.rdb.Keys(ctx, w.prefix+":*").Result()
		if len(keys) > 0 {
			_ = w.rdb.Del(ctx, keys...).Err()
		}
	}
	_ = w.rdb.Close()
}

// start creates the run with these requests and claims them all.
func (w *world) start(requests ...crawl.Request) []crawl.Task {
	w.t.Helper()
	ctx := w.t.Context()
	info, _, err := w.frontier.CreateRun(ctx, w.spec, frontier.Source{Digest: "d", Label: "urls.txt", Total: len(requests)}, frontier.CreateOptions{})
	must(w.t, err)
	w.run = info.Name()
	must(w.t, w.frontier.TakeOver(ctx, w.run, 1))
	var entries []frontier.Entry
	var quotas []frontier.HostQuota
	for _, r := range requests {
		e, err := frontier.NewEntry(r, 0, "")
		must(w.t, err)
		entries = append(entries, e)
		quotas = append(quotas, frontier.HostQuota{Host: e.Host, N: len(requests)})
	}
	_, err = w.frontier.AddBatch(ctx, w.run, 1, entries)
	must(w.t, err)
	must(w.t, w.frontier.Seal(ctx, w.run))
	claims, err := w.frontier.Claim(ctx, w.run, 1, quotas)
	must(w.t, err)
	var tasks []crawl.Task
	for _, c := range claims {
		tasks = append(tasks, crawl.Task{
			Behaviour: crawl.Behaviour, Campaign: "docs", Run: 1, ID: c.ID, URL: c.URL, Method: c.Method, Host: c.Host,
			Epoch: c.Epoch, AcceptedMS: c.AcceptedMS, Extras: c.Extras, Policy: w.spec.Retry, Timeout: w.spec.Fetch.Timeout,
		})
	}
	if len(tasks) != len(requests) {
		w.t.Fatalf("claimed %d of %d URLs", len(tasks), len(requests))
	}
	return tasks
}

// get starts the run with one GET.
func (w *world) get(url string) crawl.Task {
	w.t.Helper()
	return w.start(crawl.Request{URL: url})[0]
}

// process is one worker's activities, with a sink of its own.
func (w *world) process(name string) *activities.Activities {
	w.t.Helper()
	sink, err := results.OpenLocal(w.dir, results.LocalOptions{Worker: name})
	must(w.t, err)
	w.t.Cleanup(func() { _ = sink.Close() })
	c := activities.Config{
		Pool: w.pool, Frontier: w.frontier, Sink: sink, Exchange: fetch.New(fetch.Options{}), Redis: w.rdb,
		Worker: name + "/1/1", Slots: 8, Version: "1.0", Log: zap.NewNop(),
	}
	if w.change != nil {
		w.change(&c)
	}
	return activities.New(c)
}

func (w *world) site(opts lab.SiteOptions) *lab.Site {
	w.t.Helper()
	s, err := lab.NewSite(opts)
	must(w.t, err)
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// server is for answers that the lab's site does not have.
func (w *world) server(handler http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(handler)
	w.t.Cleanup(s.Close)
	return s
}

// proxy imports a lab proxy and stops asking directly.
func (w *world) proxy(opts lab.ProxyOptions) *lab.Proxy {
	w.t.Helper()
	p, err := lab.NewProxy(opts)
	must(w.t, err)
	w.t.Cleanup(func() { _ = p.Close() })
	entries, err := proxypool.ParseList(strings.NewReader(p.ListLine()+"\n"), "proxies.txt", proxypool.ImportOptions{})
	must(w.t, err)
	_, err = w.pool.Import(w.t.Context(), entries, proxypool.ImportOptions{})
	must(w.t, err)
	w.spec.Proxies.Direct = false
	return p
}

const runID = "0191aaaa-run"

// input is pass n of a task, as the workflow asks for it.
func input(t crawl.Task, n int) workflows.FetchInput {
	return workflows.FetchInput{Task: t, LeaseID: crawl.LeaseID(t.WorkflowID(), runID, n), Pass: n, Seed: 7}
}

// execute runs one activity as a worker does.
func execute(ctx context.Context, name string, a *activities.Activities, in, out any) error {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	env.RegisterActivityWithOptions(a.Named()[name], activity.RegisterOptions{Name: name})
	got, err := env.ExecuteActivity(name, in)
	if err != nil || out == nil {
		return err
	}
	return got.Get(out)
}

func doFetch(t *testing.T, a *activities.Activities, in workflows.FetchInput) (crawl.Outcome, error) {
	t.Helper()
	var out crawl.Outcome
	err := execute(t.Context(), workflows.ActivityFetch, a, in, &out)
	return out, err
}

// fetched runs a Fetch that must not fail.
func fetched(t *testing.T, a *activities.Activities, in workflows.FetchInput) crawl.Outcome {
	t.Helper()
	out, err := doFetch(t, a, in)
	if err != nil {
		t.Fatalf("fetch %s: %v", in.LeaseID, err)
	}
	return out
}

// finishing is the Finish that follows an outcome of a first pass.
func finishing(in workflows.FetchInput, out crawl.Outcome) workflows.FinishInput {
	d, l := crawl.Decide(crawl.Facts{Task: in.Task, Seed: in.Seed, Pass: in.Pass}, crawl.Ledgers{}, out)
	f := workflows.FinishInput{
		Task: in.Task, LeaseID: in.LeaseID, RunID: runID, Outcome: out, Decision: d, Ledgers: l,
		EndedMS: time.Now().UnixMilli(), Trail: in.Trail,
	}
	if out.Exchanged() {
		f.Attempts = []crawl.Attempt{{N: 1, Worker: out.Worker, Proxy: out.Proxy, Class: out.Class, Status: out.Status}}
	}
	return f
}

func doFinish(t *testing.T, a *activities.Activities, in workflows.FinishInput) error {
	t.Helper()
	return execute(t.Context(), workflows.ActivityFinish, a, in, nil)
}

// through runs passes until the URL ends, as the workflow does but for its timers,
// and returns the last outcome and decision.
func (w *world) through(a *activities.Activities, task crawl.Task) (crawl.Outcome, crawl.Decision) {
	w.t.Helper()
	var l crawl.Ledgers
	in := input(task, 0)
	for n := 1; n < 30; n++ {
		in.Pass, in.LeaseID = n, crawl.LeaseID(task.WorkflowID(), runID, n)
		out := fetched(w.t, a, in)
		var d crawl.Decision
		d, l = crawl.Decide(crawl.Facts{Task: task, Seed: in.Seed, Pass: n}, l, out)
		f := finishing(in, out)
		f.Decision, f.Ledgers = d, l
		must(w.t, doFinish(w.t, a, f))
		if _, end := d.State(); end {
			return out, d
		}
		if out.NextURL != "" {
			in.NextURL, in.Hops, in.Trail = out.NextURL, out.Hops, in.LeaseID
			if out.NextMethod != "" {
				in.NextMethod = out.NextMethod
			}
		}
		if d.Delay > 3*time.Second {
			w.t.Fatalf("pass %d would wait %v: %s", n, d.Delay, d.Summary)
		}
		time.Sleep(d.Delay) // the workflow's timer
	}
	w.t.Fatal("the URL does not end")
	return crawl.Outcome{}, crawl.Decision{}
}

// lines reads the run's records as they stand in the files, doubles and all.
func (w *world) lines() []string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "docs", "*", "*.jsonl"))
	must(w.t, err)
	var lines []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(w.t, err)
		for _, l := range strings.Split(string(b), "\n") {
			if strings.TrimSpace(l) != "" {
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// record returns the run's only record.
func (w *world) record() crawl.Record {
	w.t.Helper()
	if lines := w.lines(); len(lines) != 1 {
		w.t.Fatalf("%d lines, want one:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	var got crawl.Record
	for r, err := range results.Records(w.dir, "docs", 1, results.All) {
		must(w.t, err)
		got = r
	}
	return got
}

func (w *world) counts() frontier.Counts {
	w.t.Helper()
	c, err := w.frontier.Counts(context.Background(), w.run)
	must(w.t, err)
	return c
}

// noLeases fails if a lease is left.
func (w *world) noLeases() {
	w.t.Helper()
	leases, err := w.pool.Leases(context.Background())
	must(w.t, err)
	if len(leases) > 0 {
		w.t.Errorf("leases left: %+v", leases)
	}
}

// eventually polls until ok or half a minute has passed.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not in 30 s: %s", what)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

var _ log.Logger = quiet{}
