package embedded_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast/internal/embedded"
)

var campaign = temporal.NewSearchAttributeKeyKeyword("HoldfastCampaign")

func begin(ctx context.Context, t *testing.T, c client.Client, id string) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: queue, EnableEagerStart: true,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			campaign.ValueSet("docs"),
			temporal.NewSearchAttributeKeyKeyword("HoldfastHost").ValueSet("example.org:443"),
			temporal.NewSearchAttributeKeyKeyword("HoldfastReason").ValueSet("none"),
		),
	}, "waits")
	if err != nil {
		t.Fatalf("start workflow: %v", err)
	}
	return run
}

func TestAStackKeepsItsWorkOverACleanRestart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "data dir 100% #1?")
	s := start(t, embedded.Options{Dir: dir})
	if !s.IsNew || s.DataDir != dir {
		t.Errorf("new %v, in %s", s.IsNew, s.DataDir)
	}
	c := dial(t, s.TemporalAddr)
	t.Run("a workflow runs and is found by its campaign", func(t *testing.T) {
		startWorker(t, c)
		run := begin(ctx, t, c, "first")
		if err := c.SignalWorkflow(ctx, "first", "", "go", "on"); err != nil {
			t.Fatal(err)
		}
		var word string
		if err := run.Get(ctx, &word); err != nil || word != "on" {
			t.Fatalf("result %q, %v", word, err)
		}
		if n := found(ctx, t, c, "HoldfastCampaign = 'docs' AND HoldfastHost = 'example.org:443'"); n != 1 {
			t.Errorf("found %d", n)
		}
		// Columns whose index is dropped.
		if n := found(ctx, t, c, "TaskQueue = '"+queue+"' AND HistoryLength > 3 AND HistorySizeBytes > 0 AND WorkflowId = 'first'"); n != 1 {
			t.Errorf("found %d by a scan", n)
		}
	})
	t.Run("an eager start brings the first task along", func(t *testing.T) {
		r, err := c.WorkflowService().StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
			Namespace: "default", WorkflowId: "eager", RequestId: "1", RequestEagerExecution: true,
			WorkflowType: &commonpb.WorkflowType{Name: "waits"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "nobody"},
		})
		if err != nil || r.GetEagerWorkflowTask() == nil {
			t.Errorf("no task: %v", err)
		}
	})
	t.Run("closed workflows are kept thirty days", func(t *testing.T) {
		ns, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
		if err != nil || ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() != 30*24*time.Hour {
			t.Errorf("%v, %v", ns.GetConfig().GetWorkflowExecutionRetentionTtl(), err)
		}
	})
	t.Run("the web ui answers, to loopback names only", func(t *testing.T) {
		for host, want := range map[string]int{"": 200, "rebound.example": 421} {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.UIURL+"/namespaces/default/workflows", nil)
			req.Host = host
			r, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if r.StatusCode != want || want == 200 && !strings.Contains(string(body), "<html") {
				t.Errorf("host %q: %s", host, r.Status)
			}
		}
		r, err := http.Get(s.UIURL + "/api/v1/namespaces/default/workflows")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != 200 || !strings.Contains(string(body), "first") {
			t.Errorf("api: %s %.200s", r.Status, body)
		}
	})
	t.Run("a second stack is told who has the directory", func(t *testing.T) {
		_, err := embedded.Start(ctx, embedded.Options{Dir: dir})
		var locked *embedded.LockedError
		if !errors.As(err, &locked) || locked.PID != os.Getpid() {
			t.Errorf("second start: %v", err)
		}
	})
	t.Run("only the owner may read the directory", func(t *testing.T) {
		filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if info, e := d.Info(); err != nil || e != nil || path == dir && info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v %v %v", path, info.Mode(), err, e)
			}
			return nil
		})
	})
	r := redis.NewClient(&redis.Options{Addr: s.RedisAddr, DisableIdentity: true})
	r.Set(ctx, "kept", "yes", 0)
	r.Close()
	ports, err := embedded.ReadPorts(dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	stop(t, s)

	s = start(t, embedded.Options{Dir: dir})
	if now, err := embedded.ReadPorts(dir); err != nil || now != ports || s.IsNew {
		t.Errorf("ports %+v, were %+v; new %v; %v", now, ports, s.IsNew, err)
	}
	c = dial(t, s.TemporalAddr)
	var word string
	if err := c.GetWorkflow(ctx, "first", "").Get(ctx, &word); err != nil || word != "on" {
		t.Errorf("after the restart: %q, %v", word, err)
	}
	r = redis.NewClient(&redis.Options{Addr: s.RedisAddr, DisableIdentity: true})
	if v := r.Get(ctx, "kept").Val(); v != "yes" {
		t.Errorf("after the restart redis has %q", v)
	}
	r.Close()
	c.Close()
	stop(t, s)

	for what, stamp := range map[string]string{
		"temporal":      "holdfast-data 1\ntemporal 1.30.0\n",
		"holdfast data": "holdfast-data 2\ntemporal 1.32.1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "VERSION"), []byte(stamp), 0o600); err != nil {
			t.Fatal(err)
		}
		var version *embedded.VersionError
		if _, err := embedded.Start(ctx, embedded.Options{Dir: dir}); !errors.As(err, &version) || version.What != what {
			t.Errorf("another version of %s: %v", what, err)
		}
	}
}

// found waits until visibility shows something for the query.
func found(ctx context.Context, t *testing.T, c client.Client, query string) int64 {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		r, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: "default", Query: query})
		if err != nil {
			t.Fatalf("count: %v", err)
		}
		if r.GetCount() > 0 || time.Now().After(deadline) {
			return r.GetCount()
		}
	}
}

func TestAKilledStackIsBackWithinFifteenSeconds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	dir := t.TempDir()
	p := startChild(t, dir)
	c := dial(t, p.temporal)
	t.Run("a workflow waits", func(t *testing.T) {
		startWorker(t, c)
		begin(ctx, t, c, "survivor")
		if n := found(ctx, t, c, "WorkflowId = 'survivor'"); n != 1 {
			t.Fatalf("found %d", n)
		}
	})
	r := redis.NewClient(&redis.Options{Addr: p.redis, DisableIdentity: true})
	if err := r.Set(ctx, "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	p.kill()
	c.Close()
	for line := range p.lines {
		t.Errorf("the stack printed %q", line)
	}
	if p.stderr.Len() > 0 {
		t.Errorf("the stack printed %s", p.stderr.String())
	}

	begun := time.Now()
	s := start(t, embedded.Options{Dir: dir})
	ready := time.Since(begun)
	c = dial(t, s.TemporalAddr)
	startWorker(t, c)
	if err := c.SignalWorkflow(ctx, "survivor", "", "go", "on"); err != nil {
		t.Fatal(err)
	}
	var word string
	if err := c.GetWorkflow(ctx, "survivor", "").Get(ctx, &word); err != nil || word != "on" {
		t.Fatalf("result %q, %v", word, err)
	}
	total := time.Since(begun)
	t.Logf("after SIGKILL: ready in %v, the workflow ended after %v", ready.Round(10*time.Millisecond), total.Round(10*time.Millisecond))
	if total > 15*time.Second {
		t.Errorf("the workflow went on after %v", total)
	}
	r = redis.NewClient(&redis.Options{Addr: s.RedisAddr, DisableIdentity: true})
	if v := r.Get(ctx, "kept").Val(); v != "yes" {
		t.Errorf("redis has %q", v)
	}
	r.Close()
}

func TestADirectoryOfOthersIsNotTouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(context.Background(), embedded.Options{Dir: dir})
	var foreign *embedded.ForeignDirError
	if !errors.As(err, &foreign) || foreign.Found != "thesis.txt" {
		t.Fatalf("start says %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("it left %v", entries)
	}
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{Dir: t.TempDir(), NoTemporal: true})
	if s.TemporalAddr != "" || s.UIURL != "" || s.RedisURL == "" {
		t.Errorf("without Temporal: %+v", s)
	}
	ports, err := embedded.ReadPorts(s.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Start(context.Background(), embedded.Options{Dir: t.TempDir(), NoTemporal: true, RedisPort: ports.Redis})
	var taken *embedded.PortError
	if !errors.As(err, &taken) || taken.Port != ports.Redis {
		t.Fatalf("start says %v", err)
	}
}
