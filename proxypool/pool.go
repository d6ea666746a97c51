package proxypool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Pool leases proxies and hosts' turns. It is safe for concurrent use; all that
// it knows is in Redis, but for the highest fence it has seen.
type Pool struct {
	rdb     redis.UniversalClient
	opts    Options
	keys    []string
	scripts *scripts
	// broken is set where the embedded scripts could not be read.
	broken error
	// seen is the highest fence granted to this client: a Redis that is behind
	// it has lost grants.
	seen atomic.Int64

	capacityMu sync.Mutex
	capacities map[string]capacity
}

// New returns a pool on rdb. It asks nothing of Redis.
func New(rdb redis.UniversalClient, opts Options) *Pool {
	o := opts.withDefaults()
	s, err := loadScripts()
	return &Pool{rdb: rdb, opts: o, keys: buildKeys(o.Prefix), scripts: s, broken: err}
}

// Options returns the pool's options, defaults filled in.
func (p *Pool) Options() Options { return p.opts }

// run runs a script; go-redis loads it where Redis does not have it (any more).
func (p *Pool) run(ctx context.Context, s *redis.Script, args ...any) *redis.Cmd {
	if p.broken != nil {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(p.broken)
		return cmd
	}
	return s.Run(ctx, p.rdb, p.keys, args...)
}

// saw remembers the highest fence.
func (p *Pool) saw(fence int64) {
	for {
		old := p.seen.Load()
		if fence <= old || p.seen.CompareAndSwap(old, fence) {
			return
		}
	}
}

// ErrReply says that Redis answered what the scripts never do: another program
// uses the same keys, or another version does.
var ErrReply = errors.New("proxypool: unexpected reply")

// ErrRequest says that a request lacks a field or holds a character that the
// pool's records cannot.
var ErrRequest = errors.New("proxypool: invalid request")

func millis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func parseMillis(s string) (time.Duration, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: time %q", ErrReply, s)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// checkField refuses what would break a packed value.
func checkField(name, v string) error {
	if v == "" {
		return fmt.Errorf("%w: %s is empty", ErrRequest, name)
	}
	if len(v) > 1024 || strings.ContainsAny(v, "|\n\r\x00") {
		return fmt.Errorf("%w: %s", ErrRequest, name)
	}
	return nil
}

func checkHost(v string) error {
	if strings.ContainsAny(v, " \t\v\f") {
		return fmt.Errorf("%w: host", ErrRequest)
	}
	return checkField("host", v)
}
