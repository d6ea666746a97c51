package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/lab"
	"holdfast/internal/results"
	"holdfast/proxypool"
	"holdfast/workflows"
)

// stack is a running Holdfast: the services in one process, workers in others.
type stack struct {
	t        *testing.T
	ctx      context.Context
	dir      string
	at       ports
	services *process
	redis    *redis.Client
	temporal client.Client
	frontier *frontier.Store
	pool     *proxypool.Pool
}

// newStack starts services without a worker and connects to them. The test ends
// by itself after within.
func newStack(t *testing.T, within time.Duration, args ...string) *stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	s := &stack{t: t, ctx: ctx, dir: t.TempDir()}
	s.services, s.at = up(t, s.dir, append([]string{"--no-worker"}, args...)...)
	s.connect()
	return s
}

func (s *stack) connect() {
	s.t.Helper()
	opts, err := redis.ParseURL(s.at.Redis)
	s.ok(err)
	s.redis = redis.NewClient(opts)
	s.temporal, err = client.DialContext(s.ctx, client.Options{HostPort: s.at.Temporal, Namespace: s.at.Namespace, Logger: quiet{}})
	s.ok(err)
	s.t.Cleanup(func() {
		s.temporal.Close()
		_ = s.redis.Close()
	})
	s.frontier = frontier.New(s.redis, frontier.Options{})
	s.pool = proxypool.New(s.redis, proxypool.Options{})
}

func (s *stack) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stack) resultsDir() string { return filepath.Join(s.dir, "results") }

// worker starts a worker process.
func (s *stack) worker(name string, args ...string) *process {
	s.t.Helper()
	return launch(s.t, "worker "+name, os.Stderr, bin.worker, append([]string{
		"--address", s.at.Temporal, "--redis", s.at.Redis, "--results", "file://" + s.resultsDir(),
		"--name", name, "--log-level", "info",
	}, args...)...)
}

// proxies starts n good proxies and imports them, each with that many leases at once.
func (s *stack) proxies(n, concurrency int) []*lab.Proxy {
	s.t.Helper()
	var all []*lab.Proxy
	var lines strings.Builder
	for i := range n {
		p, err := lab.NewProxy(lab.ProxyOptions{Name: fmt.Sprintf("good-%d", i)})
		s.ok(err)
		s.t.Cleanup(func() { _ = p.Close() })
		all = append(all, p)
		lines.WriteString(p.ListLine() + "\n")
	}
	s.importProxies(lines.String(), concurrency)
	return all
}

func (s *stack) importProxies(lines string, concurrency int) {
	s.t.Helper()
	entries, err := proxypool.ParseList(strings.NewReader(lines), "proxies", proxypool.ImportOptions{})
	s.ok(err)
	_, err = s.pool.Import(s.ctx, entries, proxypool.ImportOptions{MaxConcurrency: concurrency})
	s.ok(err)
}

// site starts a loopback site.
func (s *stack) site(o lab.SiteOptions) *lab.Site {
	s.t.Helper()
	site, err := lab.NewSite(o)
	s.ok(err)
	s.t.Cleanup(func() { _ = site.Close() })
	return site
}

// spec is a campaign without pauses, to be changed by the test.
func spec(name string) crawl.Spec {
	d := crawl.DefaultSpec()
	d.Name, d.AllowPrivate = name, true
	d.Politeness.Delay, d.Politeness.PerHost, d.Politeness.Robots = 0, 64, "ignore"
	d.Retry = crawl.Policy{BackoffBase: 200 * time.Millisecond, BackoffCap: 2 * time.Second}
	return d
}

// start creates a run over urls and starts its campaign.
func (s *stack) start(spec crawl.Spec, urls []string) frontier.RunInfo {
	s.t.Helper()
	run, _, err := s.frontier.CreateRun(s.ctx, spec, frontier.Source{Digest: "test", Label: "test", Total: len(urls)}, frontier.CreateOptions{NewRun: true})
	s.ok(err)
	var entries []frontier.Entry
	for _, u := range urls {
		e, err := frontier.NewEntry(crawl.Request{URL: u}, 0, "")
		s.ok(err)
		entries = append(entries, e)
	}
	for n := 1; len(entries) > 0; n++ {
		k := min(len(entries), frontier.BatchSize)
		_, err := s.frontier.AddBatch(s.ctx, run.Name(), n, entries[:k])
		s.ok(err)
		entries = entries[k:]
	}
	s.ok(s.frontier.Seal(s.ctx, run.Name()))
	_, err = s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		ID: run.Name(), TaskQueue: workflows.ControlQueue, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.CampaignAttr.ValueSet(run.Campaign)),
	}, workflows.CampaignWorkflow, workflows.CampaignInput{Campaign: run.Campaign, Run: run.Run})
	s.ok(err)
	return run
}

// finished waits for a run's end and returns its counts.
func (s *stack) finished(run frontier.RunInfo) frontier.Counts {
	s.t.Helper()
	var info frontier.RunInfo
	s.until("run "+run.Name()+" ends", func() bool {
		var err error
		info, err = s.frontier.Run(s.ctx, run.Name())
		s.ok(err)
		return info.State == frontier.RunFinished || info.State == frontier.RunCanceled
	})
	s.ok(s.temporal.GetWorkflow(s.ctx, run.Name(), "").Get(s.ctx, nil))
	return info.Counts
}

// until polls for a condition, for as long as the test has.
func (s *stack) until(what string, ok func() bool) {
	s.t.Helper()
	for !ok() {
		select {
		case <-s.ctx.Done():
			s.t.Fatalf("waited in vain: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// records reads a run's records of both streams, as they lie in the files: a
// record that stands twice fails the test.
func (s *stack) records(run frontier.RunInfo) map[string]crawl.Record {
	s.t.Helper()
	return readRecords(s.t, s.resultsDir(), run.Campaign, run.Run)
}

func readRecords(t *testing.T, dir, campaign string, number int) map[string]crawl.Record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(results.RunDir(dir, campaign, number), "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	byURL := map[string]crawl.Record{}
	for _, f := range files {
		for _, r := range readLines(t, f) {
			if other, ok := byURL[r.URL]; ok {
				t.Errorf("%s has two records: %s and %s", r.URL, other.State, r.State)
			}
			byURL[r.URL] = r
		}
	}
	return byURL
}

// noLeases fails the test if the pool has one left.
func (s *stack) noLeases() {
	s.t.Helper()
	leases, err := s.pool.Leases(s.ctx)
	s.ok(err)
	if len(leases) > 0 {
		s.t.Errorf("%d leases are left: %+v", len(leases), leases)
	}
}

func urlsOf(n int, of func(int) string) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = of(i)
	}
	return urls
}

type quiet struct{}

var _ sdklog.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
