package journal_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"holdfast/internal/journal"
)

// mixed runs several writes of which one may fail half way.
const mixed = `
redis.call('HINCRBY', KEYS[1], ARGV[1], 2)
redis.pcall('LPUSH', KEYS[2], ARGV[2])
redis.call('PEXPIRE', KEYS[1], 700)
local n = redis.call('INCR', KEYS[3])
redis.call('SADD', KEYS[4], n)
return redis.call('TIME')`

// command draws one of the commands that the front lets through, on few keys so
// that types clash.
func command(t *rapid.T) []any {
	key := func() string { return fmt.Sprintf("k%d", rapid.IntRange(0, 5).Draw(t, "key")) }
	word := func() string { return rapid.StringMatching(`[a-c\x00]{0,3}`).Draw(t, "word") }
	num := func() int { return rapid.IntRange(-3, 2000).Draw(t, "number") }
	return rapid.Custom(func(t *rapid.T) []any {
		return rapid.SampledFrom([][]any{
			{"SET", key(), word()},
			{"SET", key(), word(), "PX", num()},
			{"SET", key(), word(), "KEEPTTL"},
			{"SETNX", key(), word()},
			{"APPEND", key(), word()},
			{"INCRBY", key(), num()},
			{"GETDEL", key()},
			{"GETEX", key(), "PX", num()},
			{"SETRANGE", key(), 2, word()},
			{"HSET", key(), word(), word()},
			{"HSETNX", key(), word(), word()},
			{"HDEL", key(), word()},
			{"HINCRBY", key(), word(), num()},
			{"HINCRBYFLOAT", key(), word(), "1.5"},
			{"HEXPIRE", key(), 1, "FIELDS", 1, word()},
			{"RPUSH", key(), word(), word()},
			{"LPUSH", key(), word()},
			{"LPOP", key()},
			{"RPOP", key(), 2},
			{"LREM", key(), 1, word()},
			{"LTRIM", key(), 0, 2},
			{"LMOVE", key(), key(), "LEFT", "RIGHT"},
			{"LSET", key(), 0, word()},
			{"SADD", key(), word(), word()},
			{"SREM", key(), word()},
			{"SMOVE", key(), key(), word()},
			{"ZADD", key(), "0.1", word(), num(), word()},
			{"ZINCRBY", key(), "0.2", word()},
			{"ZREM", key(), word()},
			{"ZPOPMIN", key()},
			{"ZREMRANGEBYSCORE", key(), "-inf", num()},
			{"DEL", key()},
			{"RENAME", key(), key()},
			{"EXPIRE", key(), 1},
			{"PEXPIRE", key(), num()},
			{"PERSIST", key()},
			{"PEXPIREAT", key(), int64(1772366400000) + int64(num())},
			{"GET", key()},
			{"FLUSHDB"},
			{"HSET", key()},
			{"EVAL", mixed, 4, key(), key(), key(), key(), word(), word()},
		}).Draw(t, "command")
	}).Draw(t, "drawn")
}

func TestAReopenedServerEqualsAPlainOneThatRanTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		clock := startAt(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		plain := miniredis.NewMiniRedis()
		plain.SetTime(clock.now())
		plain.ClockTTL(true)
		if err := plain.Start(); err != nil {
			rt.Fatal(err)
		}
		defer plain.Close()
		want := redis.NewClient(&redis.Options{Addr: plain.Addr(), DisableIdentity: true, MaxRetries: -1})
		defer want.Close()

		dir, err := os.MkdirTemp("", "journal")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		opts := journal.Options{Now: clock.now, Resolution: 1, CompactEvery: rapid.SampledFrom([]int{3, 1000}).Draw(rt, "compact every")}
		s, err := journal.Open(dir, opts)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { s.Close() }()
		got := redis.NewClient(&redis.Options{Addr: s.Addr(), DisableIdentity: true, MaxRetries: -1})
		defer func() { got.Close() }()

		ctx := deadlined(t)
		for range rapid.IntRange(1, 30).Draw(rt, "commands") {
			if wait := rapid.SampledFrom([]int{0, 0, 1, 400}).Draw(rt, "wait"); wait > 0 {
				clock.add(time.Duration(wait) * time.Millisecond)
				plain.SetTime(clock.now())
			}
			words := command(rt)
			a, errA := got.Do(ctx, words...).Result()
			b, errB := want.Do(ctx, words...).Result()
			if fmt.Sprint(a, errA) != fmt.Sprint(b, errB) {
				rt.Fatalf("%q: %v %v, plain %v %v", words, a, errA, b, errB)
			}
		}
		if rapid.Bool().Draw(rt, "stopped cleanly") {
			if err := s.Close(); err != nil {
				rt.Fatal(err)
			}
		} else {
			dir = copyDir(t, dir)
		}
		reopened, err := journal.Open(dir, opts)
		if err != nil {
			rt.Fatal(err)
		}
		defer reopened.Close()
		c := redis.NewClient(&redis.Options{Addr: reopened.Addr(), DisableIdentity: true, MaxRetries: -1})
		defer c.Close()
		same(t, "reopened", state(t, c), state(t, want))
	})
}
