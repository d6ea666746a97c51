package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"holdfast/starter/cli"
	"holdfast/worker/host"
)

const connectTimeout = 10 * time.Second

// probe asks the services that are elsewhere once, before anything starts or is
// written here.
func probe(ctx context.Context, o startOptions) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if o.redis != "" {
		opts, err := redisOptions(o.redis)
		if err != nil {
			return err
		}
		if err := probeRedis(ctx, opts); err != nil {
			return redisUnreachable(opts, err)
		}
	}
	if o.address == "" {
		return nil
	}
	c, err := client.DialContext(ctx, client.Options{HostPort: o.address, Namespace: o.namespace, Logger: host.SDKLogger(zap.NewNop())})
	if err != nil {
		return temporalUnreachable(o.address, err)
	}
	c.Close()
	return nil
}

// probeRedis dials once, then pings once: the client's own dial would be tried
// five times.
func probeRedis(ctx context.Context, opts *redis.Options) error {
	network := opts.Network
	if network == "" {
		network = "tcp"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, opts.Addr)
	if err != nil {
		return err
	}
	_ = conn.Close() // nothing was said on it
	opts.MaxRetries = -1
	rdb := redis.NewClient(opts)
	defer rdb.Close() //nolint:errcheck // nothing is buffered
	return rdb.Ping(ctx).Err()
}

// redisOptions reads a Redis URL.
func redisOptions(at string) (*redis.Options, error) {
	opts, err := redis.ParseURL(at)
	if err != nil { // its text repeats the URL, password and all
		return nil, &cli.Failure{Code: "usage", Exit: cli.ExitUsage, Message: "the Redis URL is not valid", Hint: "give redis://host:port[/db]"}
	}
	return opts, nil
}

func redisUnreachable(opts *redis.Options, err error) error {
	return &cli.Failure{
		Code: "unreachable", Exit: cli.ExitUnreachable, Err: err,
		Message: fmt.Sprintf("Redis at %s cannot be used: %v", opts.Addr, err), Hint: "check --redis and HOLDFAST_REDIS",
	}
}

func temporalUnreachable(address string, err error) error {
	return &cli.Failure{
		Code: "unreachable", Exit: cli.ExitUnreachable, Err: err,
		Message: fmt.Sprintf("Temporal at %s cannot be used: %v", address, err), Hint: "check --address and TEMPORAL_ADDRESS",
	}
}
