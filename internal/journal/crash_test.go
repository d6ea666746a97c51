package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/journal"
)

// child is the process that is killed: a server over dir that says its address
// and, told so on its input, lifts its file size limit.
func child(dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	limit, _ := strconv.ParseUint(os.Getenv("HOLDFAST_JOURNAL_FSIZE"), 10, 64)
	var was syscall.Rlimit
	if limit > 0 {
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			fmt.Println(err)
			return
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: was.Max}); err != nil {
			fmt.Println(err)
			return
		}
	}
	every, _ := strconv.Atoi(os.Getenv("HOLDFAST_JOURNAL_COMPACT"))
	s, err := journal.Open(dir, journal.Options{CompactEvery: every})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Addr())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			fmt.Println(err)
		}
		fmt.Println("lifted")
	}
}

type process struct {
	cmd  *exec.Cmd
	addr string
	in   io.WriteCloser
	out  *bufio.Scanner
}

func startChild(t *testing.T, dir string, env ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(self)}
	p.cmd.Env = append(append(os.Environ(), "HOLDFAST_JOURNAL_CHILD="+dir), env...)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start child: %v", err)
	}
	t.Cleanup(p.kill)
	p.out = bufio.NewScanner(out)
	if !p.out.Scan() || !strings.HasPrefix(p.out.Text(), "127.0.0.1:") {
		t.Fatalf("child said %q", p.out.Text())
	}
	p.addr = p.out.Text()
	return p
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

const pair = `
redis.call('HSET', KEYS[1], 'a', ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('HINCRBY', KEYS[1], 'n', 1)
redis.call('HSET', KEYS[1], 'b', ARGV[1])
return ARGV[1]`

func TestKillLosesNoAcknowledgedWriteAndTearsNoScript(t *testing.T) {
	t.Parallel()
	for name, compact := range map[string]string{"without a compaction": "0", "while compacting": "40"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := startChild(t, dir, "HOLDFAST_JOURNAL_COMPACT="+compact)
			const writers = 4
			var acked [writers]int
			var total atomic.Int64
			enough := make(chan struct{})
			var wg sync.WaitGroup
			for w := range writers {
				c := redis.NewClient(&redis.Options{Addr: p.addr, DisableIdentity: true, MaxRetries: -1})
				wg.Go(func() {
					defer c.Close()
					ctx := context.Background()
					for i := 1; ; i++ {
						_, err := c.Pipelined(ctx, func(pl redis.Pipeliner) error {
							pl.Set(ctx, fmt.Sprintf("s%d", w), i, 0)
							pl.Eval(ctx, pair, []string{fmt.Sprintf("h%d", w), fmt.Sprintf("l%d", w)}, i)
							return nil
						})
						if err != nil {
							return
						}
						acked[w] = i
						if total.Add(1) == 800 {
							close(enough)
						}
					}
				})
			}
			select {
			case <-enough:
			case <-time.After(30 * time.Second):
				t.Error("too slow")
			}
			p.kill()
			wg.Wait()

			c := dial(t, open(t, dir, journal.Options{}).Addr())
			ctx := deadlined(t)
			for w := range writers {
				set, err := c.Get(ctx, fmt.Sprintf("s%d", w)).Int()
				if err != nil || set < acked[w] || set > acked[w]+1 {
					t.Errorf("writer %d: string is %d (%v), %d was acknowledged", w, set, err, acked[w])
				}
				h := c.HMGet(ctx, fmt.Sprintf("h%d", w), "a", "b", "n").Val()
				if h[0] != h[1] || h[0] != h[2] {
					t.Errorf("writer %d: a script is torn: %v", w, h)
				}
				a, _ := strconv.Atoi(fmt.Sprint(h[0]))
				if a < acked[w] || a > acked[w]+1 {
					t.Errorf("writer %d: hash is %d, %d was acknowledged", w, a, acked[w])
				}
				if n := c.LLen(ctx, fmt.Sprintf("l%d", w)).Val(); n != int64(a) {
					t.Errorf("writer %d: list of %d, scripts run %d", w, n, a)
				}
			}
		})
	}
}

func TestAFullDiskRefusesCommandsUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startChild(t, dir, "HOLDFAST_JOURNAL_FSIZE=65536")
	c := dial(t, p.addr)
	ctx := deadlined(t)
	value := strings.Repeat("x", 1000)
	acked := 0
	var err error
	for range 200 {
		if err = c.Set(ctx, fmt.Sprintf("k%03d", acked), value, 0).Err(); err != nil {
			break
		}
		acked++
	}
	if err == nil || acked < 50 {
		t.Fatalf("%d writes of 1 kB were taken with 64 kB of room", acked)
	}
	if err := c.Get(ctx, "k000").Err(); err == nil || !strings.HasPrefix(err.Error(), "MISCONF") {
		t.Fatalf("with a full disk a read says %v", err)
	}
	fmt.Fprintln(p.in, "lift")
	if !p.out.Scan() || p.out.Text() != "lifted" {
		t.Fatalf("child said %q", p.out.Text())
	}
	if err := c.Set(ctx, "after", "1", 0).Err(); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	p.kill()

	c = dial(t, open(t, dir, journal.Options{}).Addr())
	for i := range acked {
		if c.Get(ctx, fmt.Sprintf("k%03d", i)).Val() != value {
			t.Fatalf("write %d of %d is lost", i, acked)
		}
	}
	if c.Get(ctx, "after").Val() != "1" {
		t.Fatal("the write after is lost")
	}
}
