package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast/internal/embedded"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("HOLDFAST_EMBEDDED_CHILD"); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// child runs a stack until it is killed. It says one line.
func child(dir string) {
	s, err := embedded.Start(context.Background(), embedded.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.TemporalAddr, s.RedisAddr)
	select {}
}

type process struct {
	cmd             *exec.Cmd
	temporal, redis string
	stderr          bytes.Buffer
	lines           chan string
}

func startChild(t *testing.T, dir string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(self), lines: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), "HOLDFAST_EMBEDDED_CHILD="+dir)
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			p.lines <- in.Text()
		}
	}()
	t.Cleanup(p.kill)
	select {
	case line := <-p.lines:
		if n, err := fmt.Sscan(line, &p.temporal, &p.redis); n != 2 {
			t.Fatalf("child said %q (%v)", line, err)
		}
	case <-time.After(90 * time.Second):
		t.Fatal("child did not start")
	}
	return p
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func start(t *testing.T, o embedded.Options) *embedded.Stack {
	t.Helper()
	o.Warn = func(err error) { t.Errorf("in the background: %v", err) }
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	begun := time.Now()
	s, err := embedded.Start(ctx, o)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Logf("started (new: %v) in %v", s.IsNew, time.Since(begun).Round(10*time.Millisecond))
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *embedded.Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	begun := time.Now()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if d := time.Since(begun); d > time.Millisecond {
		t.Logf("stopped in %v", d.Round(10*time.Millisecond))
	}
}

func dial(t *testing.T, addr string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: addr, Logger: silent{}})
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

const queue = "embedded-test"

// waits returns what the signal "go" brings.
func waits(ctx workflow.Context) (string, error) {
	var word string
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, &word)
	return word, nil
}

func startWorker(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(waits, workflow.RegisterOptions{Name: "waits"})
	if err := w.Start(); err != nil {
		t.Fatalf("start worker: %v", err)
	}
	t.Cleanup(w.Stop)
}

type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
