package journal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/journal"
)

func TestRefusedCommandsSaySo(t *testing.T) {
	t.Parallel()
	c := dial(t, open(t, t.TempDir(), journal.Options{}).Addr())
	ctx := deadlined(t)
	for _, words := range [][]any{
		{"BLPOP", "l", 0},
		{"BLMOVE", "a", "b", "LEFT", "LEFT", 0},
		{"XADD", "x", "*", "a", "b"},
		{"PFADD", "p", "a"},
		{"SUBSCRIBE", "c"},
		{"WATCH", "k"},
		{"MOVE", "k", 1},
		{"NOSUCH"},
		{"SHUTDOWN"},
		{"SELECT", 1},
		{"CONFIG", "SET", "a", "b"},
	} {
		err := c.Do(ctx, words...).Err()
		if err == nil || !strings.Contains(err.Error(), "embedded Redis") {
			t.Errorf("%v says %v", words, err)
		}
	}
	for _, script := range []string{
		`return redis.call('BLPOP', 'l', '0')`, `return redis.call('SELECT', '1')`, `return redis.call('XADD', 'x', '*', 'a', 'b')`,
		`return redis.call('EVAL', 'return 1', '0')`, `return redis.call('MULTI')`,
	} {
		err := c.Eval(ctx, script, nil).Err()
		if err == nil || !strings.Contains(err.Error(), "embedded Redis") {
			t.Errorf("%s says %v", script, err)
		}
	}
	if n := c.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d keys were made", n)
	}
}

func TestSessionCommandsAnswer(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), journal.Options{})
	c := dial(t, s.Addr())
	ctx := deadlined(t)
	if v, err := c.ConfigGet(ctx, "maxmemory-policy").Result(); err != nil || v["maxmemory-policy"] != "noeviction" {
		t.Errorf("config get: %v, %v", v, err)
	}
	if v, err := c.Info(ctx, "server").Result(); err != nil || !strings.Contains(v, "run_id:") {
		t.Errorf("info: %v, %v", v, err)
	}
	if v, err := c.Ping(ctx).Result(); err != nil || v != "PONG" {
		t.Errorf("ping: %v, %v", v, err)
	}
	opts, err := redis.ParseURL(s.URL())
	if err != nil || opts.Addr != s.Addr() || opts.DB != 0 {
		t.Errorf("url %s: %+v, %v", s.URL(), opts, err)
	}
}

func TestATransactionIsOneStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, open(t, dir, journal.Options{}).Addr())
	ctx := deadlined(t)
	got, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "a", "1", 0)
		p.Incr(ctx, "a")
		p.Eval(ctx, pair, []string{"h", "l"}, "v")
		p.Get(ctx, "a")
		return nil
	})
	if err != nil || got[3].(*redis.StringCmd).Val() != "2" {
		t.Fatalf("exec: %v, %v", got, err)
	}
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "a", "9", 0)
		p.BLPop(ctx, 0, "l")
		return nil
	})
	if err == nil || c.Get(ctx, "a").Val() != "2" {
		t.Fatalf("a transaction with a refused command: %v, a is %s", err, c.Get(ctx, "a").Val())
	}
	again := open(t, copyDir(t, dir), journal.Options{})
	if r := again.Restored(); r.Records != 1 {
		t.Errorf("the transaction is %d records", r.Records)
	}
	same(t, "after a crash", state(t, dial(t, again.Addr())), state(t, c))
}

func TestAScriptThatPanicsTheEngineIsUndone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	told := make(chan error, 10)
	c := dial(t, open(t, dir, journal.Options{OnError: func(err error) { told <- err }}).Addr())
	ctx := deadlined(t)
	c.Set(ctx, "k", "1", 0)
	err := c.Eval(ctx, `redis.call('SET', 'k', '2') return function() end`, nil).Err()
	if err == nil {
		t.Fatal("the script answered")
	}
	select {
	case <-told:
	case <-ctx.Done():
		t.Fatal("nobody was told")
	}
	if v := c.Get(ctx, "k").Val(); v != "1" {
		t.Errorf("k is %q", v)
	}
	c.Set(ctx, "k", "3", 0)
	if v := dial(t, open(t, copyDir(t, dir), journal.Options{}).Addr()).Get(ctx, "k").Val(); v != "3" {
		t.Errorf("after a crash k is %q", v)
	}
}

func TestScriptsAreForgottenAndLoadedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, open(t, dir, journal.Options{}).Addr())
	ctx := deadlined(t)
	sha := c.ScriptLoad(ctx, pair).Val()
	if err := c.EvalSha(ctx, sha, []string{"h", "l"}, 1).Err(); err != nil {
		t.Fatal(err)
	}
	c = dial(t, open(t, copyDir(t, dir), journal.Options{}).Addr())
	if err := c.EvalSha(ctx, sha, []string{"h", "l"}, 2).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Fatalf("evalsha after a restart says %v", err)
	}
	if err := redis.NewScript(pair).Run(ctx, c, []string{"h", "l"}, 2).Err(); err != nil {
		t.Fatal(err)
	}
	if v := c.HGet(ctx, "h", "n").Val(); v != "2" {
		t.Errorf("n is %q", v)
	}
}

func TestRandomPopsAreKeptAsTheyFell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, open(t, dir, journal.Options{}).Addr())
	ctx := deadlined(t)
	for i := range 50 {
		c.SAdd(ctx, "s", fmt.Sprint(i))
	}
	one := c.SPop(ctx, "s").Val()
	many := c.SPopN(ctx, "s", 20).Val()
	inside, err := c.Eval(ctx, `return redis.call('SPOP', 's', '5')`, nil).StringSlice()
	if err != nil || one == "" || len(many) != 20 || len(inside) != 5 {
		t.Fatalf("popped %q, %v, %v, %v", one, many, inside, err)
	}
	want := c.SMembers(ctx, "s").Val()
	if len(want) != 24 {
		t.Fatalf("%d are left", len(want))
	}
	got := dial(t, open(t, copyDir(t, dir), journal.Options{}).Addr()).SMembers(ctx, "s").Val()
	slices.Sort(got)
	slices.Sort(want)
	same(t, "after a crash", got, want)
}

func TestALongPipelineAndALargeReplyCome(t *testing.T) {
	t.Parallel()
	c := dial(t, open(t, t.TempDir(), journal.Options{}).Addr())
	ctx := deadlined(t)
	big := strings.Repeat("y", 1<<20)
	cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "big", big, 0)
		for range 3000 {
			p.Incr(ctx, "n")
		}
		p.Get(ctx, "big")
		return nil
	})
	if err != nil || cmds[3000].(*redis.IntCmd).Val() != 3000 || cmds[3001].(*redis.StringCmd).Val() != big {
		t.Fatalf("%d replies, %v", len(cmds), err)
	}
}
