package bench

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Calls counts what one Redis client asks, its connections' handshakes in bytes only. Its zero value is ready; Client makes
// the client.
type Calls struct {
	commands, trips, sent, received atomic.Int64
}

// Client returns a client that is counted.
func (c *Calls) Client(opts *redis.Options) *redis.Client {
	dial := opts.Dialer
	if dial == nil {
		dial = redis.NewDialer(opts)
	}
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn, calls: c}, nil
	}
	rdb := redis.NewClient(opts)
	rdb.AddHook((*callsHook)(c))
	return rdb
}

type countedConn struct {
	net.Conn
	calls *Calls
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.calls.received.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.calls.sent.Add(int64(n))
	return n, err
}

type callsHook Calls

var _ redis.Hook = (*callsHook)(nil)

func (h *callsHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *callsHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.count(cmd)
		return next(ctx, cmd)
	}
}

func (h *callsHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.count(cmds...)
		return next(ctx, cmds)
	}
}

// count counts a round trip, but for a connection's handshake.
func (h *callsHook) count(cmds ...redis.Cmder) {
	switch cmds[0].Name() {
	case "hello", "auth", "client", "select":
		return
	}
	h.commands.Add(int64(len(cmds)))
	h.trips.Add(1)
}
