package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/lab"
)

func TestTheDemoEndsAsItShould(t *testing.T) {
	t.Parallel()
	demoIsRight(t)
}

func TestTheDemoOnARealRedis(t *testing.T) {
	t.Parallel()
	if os.Getenv("HOLDFAST_TEST_REDIS") == "" {
		t.Skip("HOLDFAST_TEST_REDIS names no Redis")
	}
	demoIsRight(t, "--redis", realRedis(t, demoDB))
}

// demoIsRight runs the demo and reads its last line.
func demoIsRight(t *testing.T, args ...string) {
	t.Helper()
	out, said, code := runs(t, bin.standalone, append([]string{"demo", "--output", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, out, said)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var got struct {
		URLs, Completed, Retries int
		Failed                   map[string]int
		ProxyFaults              int `json:"proxy_faults"`
		Waits                    int
		Leases                   *int
		UI                       string
	}
	d := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("the last line %q: %v", lines[len(lines)-1], err)
	}
	failed := 0
	for _, n := range got.Failed {
		failed += n
	}
	if got.URLs == 0 || got.URLs != got.Completed+failed || got.Failed["http_404"] == 0 {
		t.Errorf("the URLs do not add up: %+v", got)
	}
	if got.Retries == 0 || got.ProxyFaults == 0 || got.Waits == 0 || !strings.HasPrefix(got.UI, "http://") {
		t.Errorf("the demo shows too little: %+v", got)
	}
	if got.Leases == nil || *got.Leases != 0 {
		t.Errorf("leases: %v, want 0", got.Leases)
	}
}

// TestASecondTerminal runs everything in one process and steers it from others.
func TestASecondTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site, err := lab.NewSite(lab.SiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = site.Close() })
	var proxies, urls strings.Builder
	for range 3 {
		p, err := lab.NewProxy(lab.ProxyOptions{Username: "u", Password: "canary-7431"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		proxies.WriteString(p.ListLine() + "\n")
	}
	for i := range 20 {
		urls.WriteString(site.URL(fmt.Sprintf("/ok/%d", i)) + "\n")
	}
	urls.WriteString(site.URL("/missing/1") + "\n")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	service, at := up(t, dir, "--grace", "10s")

	// say runs a command in the second terminal.
	say := func(want int, args ...string) string {
		t.Helper()
		out, said, code := runs(t, bin.standalone, append(args, "--data", at.Data)...)
		if code != want {
			t.Fatalf("%s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, said)
		}
		if strings.Contains(out+said, "canary-7431") {
			t.Errorf("%s shows a password: %s%s", strings.Join(args, " "), out, said)
		}
		return out
	}
	say(0, "proxies", "import", write("proxies.txt", proxies.String()))
	if out := say(0, "proxies", "list"); strings.Count(out, "127.0.0.1") != 3 {
		t.Errorf("proxies list:\n%s", out)
	}
	say(0, "campaign", "start", "--name", "second", "--urls", write("urls.txt", urls.String()), "--delay", "0s", "--per-host", "8", "--wait")
	var status struct {
		Name, State                 string
		Accepted, Completed, Failed int
	}
	if err := json.Unmarshal([]byte(say(0, "campaign", "status", "second", "--output", "json")), &status); err != nil {
		t.Fatal(err)
	}
	if status.State != "finished" || status.Accepted != 21 || status.Completed != 20 || status.Failed != 1 {
		t.Errorf("status %+v", status)
	}
	if out := say(0, "campaign", "list"); !strings.Contains(out, "second-1") || !strings.Contains(out, "finished") {
		t.Errorf("campaign list:\n%s", out)
	}
	lines := 0
	scan := bufio.NewScanner(strings.NewReader(say(0, "results", "tail", "second", "-n", "100")))
	for scan.Scan() {
		var r struct{ State, URL string }
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil || r.State != "completed" {
			t.Errorf("results tail printed %q (%v)", scan.Text(), err)
		}
		lines++
	}
	if lines != 20 {
		t.Errorf("results tail printed %d records, want 20", lines)
	}
	if out := say(0, "results", "show", "second", site.URL("/ok/3")); !bytes.Equal([]byte(out), lab.PageOf("3")) {
		t.Errorf("results show printed %d bytes, not the page", len(out))
	}
	if out := say(0, "failures", "list", "second"); !strings.Contains(out, "http_404") {
		t.Errorf("failures list:\n%s", out)
	}
	if out := say(0, "explain", site.URL("/missing/1")); !strings.Contains(out, "404") {
		t.Errorf("explain:\n%s", out)
	}
	_ = service.cmd.Process.Signal(syscall.SIGINT)
	start := time.Now()
	if code := service.exit(40 * time.Second); code != 0 {
		t.Errorf("up ends with %d after Ctrl-C", code)
	}
	t.Logf("up stopped after %v", time.Since(start).Round(time.Millisecond))
	_, said, code := runs(t, bin.standalone, "campaign", "list", "--data", at.Data)
	if code != 3 || !strings.Contains(said, " up") {
		t.Errorf("a command without services: exit %d, %s", code, said)
	}
}
