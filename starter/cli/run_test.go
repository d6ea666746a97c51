package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/internal/frontier"
	"holdfast/proxypool"
	"holdfast/starter/cli"
)

// deadAddress is a port of loopback on which nothing listens.
const deadAddress = "127.0.0.1:1"

// bench runs commands in-process against an embedded Redis and, where one was
// started, a Temporal frontend of the test's own.
type bench struct {
	t     *testing.T
	redis *miniredis.Miniredis
	env   cli.Env
	vars  []string
	fake  *temporalServer
}

// answer is what a command left behind.
type answer struct {
	stdout, stderr string
	code           int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, redis: miniredis.RunT(t)}
	b.vars = []string{
		"HOLDFAST_REDIS=redis://" + b.redis.Addr(),
		"TEMPORAL_ADDRESS=" + deadAddress,
		"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml"),
	}
	b.env.Every = 5 * time.Millisecond
	return b
}

// withTemporal starts a frontend and points the commands at it.
func (b *bench) withTemporal() *bench {
	b.t.Helper()
	b.fake = startTemporal(b.t)
	b.set("TEMPORAL_ADDRESS", b.fake.addr)
	return b
}

func (b *bench) set(key, value string) { b.vars = append(b.vars, key+"="+value) }

func (b *bench) run(args ...string) answer { return b.runWith(b.t.Context(), "", args...) }

func (b *bench) runWith(ctx context.Context, stdin string, args ...string) answer {
	b.t.Helper()
	var out, errs safeBuffer
	env := b.env
	env.Stdin, env.Stdout, env.Stderr = strings.NewReader(stdin), &out, &errs
	env.Environ = func() []string { return b.vars }
	code := cli.Run(ctx, args, env)
	return answer{out.String(), errs.String(), code}
}

// interrupted runs a command and interrupts it once when holds of what it has
// printed, as Ctrl-C would.
func (b *bench) interrupted(when func(printed string) bool, args ...string) answer {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	var out, errs safeBuffer
	env := b.env
	env.Stdout, env.Stderr, env.Environ = &out, &errs, func() []string { return b.vars }
	code := make(chan int)
	go func() { code <- cli.Run(ctx, args, env) }()
	eventually(b.t, "the moment to interrupt", func() bool { return when(out.String() + errs.String()) })
	cancel()
	got := <-code
	return answer{out.String(), errs.String(), got}
}

func (b *bench) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: b.redis.Addr()})
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (b *bench) frontier() *frontier.Store { return frontier.New(b.client(), frontier.Options{}) }
func (b *bench) pool() *proxypool.Pool     { return proxypool.New(b.client(), proxypool.Options{}) }

// file writes a file of the test's own and returns its path.
func (b *bench) file(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// wants fails unless the command ended with this code.
func (a answer) wants(t *testing.T, code int) answer {
	t.Helper()
	if a.code != code {
		t.Fatalf("exit %d, want %d\nstdout: %s\nstderr: %s", a.code, code, a.stdout, a.stderr)
	}
	return a
}

// says fails unless all of these stand in what was printed.
func (a answer) says(t *testing.T, words ...string) answer {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(a.stdout+a.stderr, w) {
			t.Errorf("nothing says %q\nstdout: %s\nstderr: %s", w, a.stdout, a.stderr)
		}
	}
	return a
}

// safeBuffer is written by a command and read by the test that watches it.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// eventually polls until ok holds, for at most ten seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("it never came to this: %s", what)
}
