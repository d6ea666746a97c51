package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one of the programs, running. Whatever becomes of the test, it ends
// with it.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	name string
	err  lockedBuffer
	done chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts a program; stdout gets its standard output.
func launch(t *testing.T, name string, stdout io.Writer, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, done: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = stdout, &p.err
	p.cmd.Env = cleanEnv()
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, tail(p.err.String(), 4000))
		}
	})
	return p
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// cleanEnv is the environment without what would point the programs elsewhere.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TEMPORAL_") && !strings.HasPrefix(kv, "HOLDFAST_") {
			env = append(env, kv)
		}
	}
	return env
}

// kill sends SIGKILL and waits.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop sends SIGTERM and returns the exit code.
func (p *process) stop(within time.Duration) int {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.exit(within)
}

// exit waits for the process' own end.
func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		p.t.Fatalf("%s runs on after %v", p.name, within)
		return -1
	}
}

// ports are where a stack's services listen, as `up --output json` says.
type ports struct {
	UI, Temporal, Namespace, Redis, Results, Data string
}

// up starts a stack on dir and waits until it says that it is up.
func up(t *testing.T, dir string, args ...string) (*process, ports) {
	t.Helper()
	r, w := io.Pipe()
	args = append([]string{"up", "--output", "json", "--no-ui", "--data", filepath.Join(dir, "data"), "--results", filepath.Join(dir, "results")}, args...)
	p := launch(t, "standalone up", w, bin.standalone, args...)
	go func() {
		<-p.done
		_ = w.CloseWithError(errors.New("standalone up ended"))
	}()
	var at ports
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil {
		t.Fatalf("standalone up: %v\n%s", err, p.err.String())
	}
	go io.Copy(io.Discard, r) //nolint:errcheck // nothing more is expected
	return p, at
}

// runs executes a program to its end and returns what it wrote and its exit code.
func runs(t *testing.T, path string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(path, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, cleanEnv()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", path, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
