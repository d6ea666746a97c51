package e2e_test

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// benchReport is what the tests read of a benchmark's JSON.
type benchReport struct {
	Redis    string
	Measures []json.RawMessage
	Shapes   map[string]struct {
		CPUMS        float64 `json:"cpu_ms"`
		RedisCPUMS   float64 `json:"redis_cpu_ms"`
		Events       float64 `json:"history_events"`
		HistoryBytes float64 `json:"history_bytes"`
		Eager        float64
		RedisCalls   float64 `json:"redis_calls"`
		Allocs       float64
		PerSec       float64 `json:"urls_per_second"`
	}
	Ratios []struct {
		Name             string
		Median, Min, Max float64
	}
}

// TestTheBenchmarkMeasuresAllShapes runs it tiny. It holds what does not depend on
// the machine: a URL's events, bytes and calls, and that it is started eagerly.
func TestTheBenchmarkMeasuresAllShapes(t *testing.T) {
	t.Parallel()
	got := benchmark(t)
	if got.Redis != "embedded" {
		t.Errorf("redis %q", got.Redis)
	}
	if naive := got.Shapes["naive"]; naive.Events < 20 {
		t.Errorf("the naive shape has %v events a URL: it is not what it is for", naive.Events)
	}
}

func TestTheBenchmarkShowsARealRedisCPUAndEmptiesItsDatabase(t *testing.T) {
	t.Parallel()
	at := realRedis(t, benchDB)
	got := benchmark(t, "--redis", at)
	if got.Redis != "elsewhere" || got.Shapes["product"].RedisCPUMS <= 0 {
		t.Errorf("redis %q, its CPU %v ms a URL", got.Redis, got.Shapes["product"].RedisCPUMS)
	}
	opts, err := redis.ParseURL(at)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close() //nolint:errcheck // a probe
	if n := rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if err := rdb.Set(t.Context(), "mine", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	_, said, code := runs(t, bin.standalone, "bench", "--under", t.TempDir(), "--redis", at)
	if code != 2 || !strings.Contains(said, "1 keys") {
		t.Errorf("over somebody's keys: exit %d, %s", code, said)
	}
	if rdb.Get(t.Context(), "mine").Val() != "1" {
		t.Error("somebody's key is gone")
	}
}

// benchmark runs one and checks what every place has in common.
func benchmark(t *testing.T, args ...string) benchReport {
	t.Helper()
	under := t.TempDir()
	out, said, code := runs(t, bin.standalone, append([]string{
		"bench", "--count", "12", "--rounds", "1", "--concurrency", "4", "--proxies", "2", "--faults", "0.25", "--output", "json", "--under", under,
	}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, out, said)
	}
	var got benchReport
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("it printed %q: %v", out, err)
	}
	if len(got.Measures) != 3 || len(got.Shapes) != 3 || len(got.Ratios) == 0 {
		t.Fatalf("%d measures, %d shapes, %d ratios:\n%s", len(got.Measures), len(got.Shapes), len(got.Ratios), out)
	}
	for name, s := range got.Shapes {
		if s.CPUMS <= 0 || s.PerSec <= 0 || s.Allocs <= 0 || s.Events < 5 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for _, name := range []string{"floor", "product"} {
		if got.Shapes[name].Eager != 1 {
			t.Errorf("%s: %v of the workflows were started eagerly, want all", name, got.Shapes[name].Eager)
		}
	}
	empty(t, under)
	return got
}

func TestAnInterruptedBenchmarkLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	under := t.TempDir()
	p := launch(t, "standalone bench", io.Discard, bin.standalone, "bench", "--count", "100000", "--under", under)
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(p.err.String(), "warming up"); {
		if time.Now().After(deadline) {
			t.Fatalf("it has not begun:\n%s", p.err.String())
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	if code := p.exit(time.Minute); code != 130 {
		t.Errorf("exit %d, want 130\n%s", code, p.err.String())
	}
	empty(t, under)
}

func TestABenchmarkOfNothingIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--count", "0"}, {"--rounds", "-1"}, {"--shapes", "floor,cheapest"}, {"--faults", "1.5"}, {"--latency", "-1s"}, {"pages"},
	} {
		if _, said, code := runs(t, bin.standalone, append([]string{"bench"}, args...)...); code != 2 {
			t.Errorf("%q: exit %d, want 2: %s", args, code, said)
		}
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("%s is left", e.Name())
	}
}
