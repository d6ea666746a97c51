package bench_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"holdfast/internal/bench"
)

func TestCallsCountsCommandsRoundTripsAndBytes(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	var c bench.Calls
	rdb := c.Client(&redis.Options{Addr: m.Addr(), DisableIdentity: true, Protocol: 2})
	t.Cleanup(func() { _ = rdb.Close() })
	ctx := t.Context()
	if err := rdb.Ping(ctx).Err(); err != nil { // connected
		t.Fatal(err)
	}
	commands, trips, bytes := c.Counts()
	if err := rdb.Set(ctx, "k", "0123456789", 0).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, "k")
		p.Get(ctx, "k")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	commands2, trips2, bytes2 := c.Counts()
	if n := commands2 - commands; n != 3 {
		t.Errorf("%d commands, want 3", n)
	}
	if n := trips2 - trips; n != 2 {
		t.Errorf("%d round trips, want 2", n)
	}
	if n := bytes2 - bytes; n < 30 || n > 1000 {
		t.Errorf("%d bytes for a value of ten, sent once and read twice", n)
	}
}
