package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.uber.org/zap"

	"holdfast/internal/results"
	"holdfast/internal/version"
	"holdfast/worker/host"
)

// options are the worker's flags.
type options struct {
	address, namespace, profile, redis string
	results, name, queue, logLevel     string
	concurrency                        int
	grace                              time.Duration
}

// failure is an error with its exit code and what to do about it.
type failure struct {
	err  error
	hint string
	code int
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
)

func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return &failure{err: err, code: exitUsage} // cobra's own: flags, arguments
}

func newCommand(name string, env map[string]string, stderr io.Writer) *cobra.Command {
	o := options{}
	get := func(key, fallback string) string {
		if v := env[key]; v != "" {
			return v
		}
		return fallback
	}
	hostname, _ := os.Hostname()
	cmd := &cobra.Command{
		Use:   name,
		Short: "Run Holdfast's workflows and fetches",
		Long: `Run Holdfast's workflows and fetches against a Temporal cluster and a Redis.

Start any number of workers; they share the work. SIGTERM or Ctrl-C drains:
no new lease is taken, fetches under way may end within the grace, what is left
is handed on to another worker. A second one quits at once.`,
		Example: "  " + name + " --address temporal:7233 --redis redis://redis:6379 --results file:///data/results\n" +
			"  " + name + " --queue eu-fetch --concurrency 64     # a regional fetch worker",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Version,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), o, env, stderr)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "address", "", "Temporal's address (TEMPORAL_ADDRESS; default 127.0.0.1:7233)")
	f.StringVar(&o.namespace, "namespace", "", "Temporal's namespace (TEMPORAL_NAMESPACE; default \"default\")")
	f.StringVar(&o.profile, "profile", "", "profile of the Temporal client configuration (TEMPORAL_PROFILE)")
	f.StringVar(&o.redis, "redis", "", "Redis' URL; a password belongs into HOLDFAST_REDIS (default redis://127.0.0.1:6379)")
	f.StringVar(&o.results, "results", get("HOLDFAST_RESULTS", ""), "where results go: file:///abs/dir (HOLDFAST_RESULTS)")
	f.StringVar(&o.name, "name", get("HOLDFAST_WORKER", hostname), "this worker's name in records and files (HOLDFAST_WORKER)")
	f.StringVar(&o.queue, "queue", "", "serve only this fetch queue, for campaigns that name it")
	f.StringVar(&o.logLevel, "log-level", get("HOLDFAST_LOG_LEVEL", "info"), "debug, info, warn or error (HOLDFAST_LOG_LEVEL)")
	f.IntVar(&o.concurrency, "concurrency", host.DefaultSlots, "URLs in flight in this worker")
	f.DurationVar(&o.grace, "grace", host.DefaultGrace, "time that fetches under way have to end after a stop")
	return cmd
}

func serve(ctx context.Context, o options, env map[string]string, stderr io.Writer) error {
	log, err := newLogger(stderr, o.logLevel)
	if err != nil {
		return &failure{err: err, hint: "give --log-level debug, info, warn or error", code: exitUsage}
	}
	if o.concurrency < 1 {
		return &failure{err: fmt.Errorf("--concurrency %d is not a positive number", o.concurrency), code: exitUsage}
	}
	if o.results == "" {
		return &failure{
			err:  errors.New("no place for results"),
			hint: "give --results file:///abs/dir or set HOLDFAST_RESULTS", code: exitUsage,
		}
	}
	location, err := results.ParseURL(o.results)
	if err != nil {
		return &failure{err: fmt.Errorf("--results: %w", err), code: exitUsage}
	}
	rdb, err := dialRedis(ctx, o, env)
	if err != nil {
		return err
	}
	defer rdb.Close() //nolint:errcheck // the process ends
	temporal, namespace, err := dialTemporal(ctx, o, env, log)
	if err != nil {
		return err
	}
	defer temporal.Close()

	if err := host.CheckSink(ctx, rdb, location.String()); err != nil {
		return sinkFailure(err)
	}
	sink, err := location.Open(results.LocalOptions{Worker: o.name})
	if err != nil {
		return &failure{err: fmt.Errorf("open results: %w", err), code: exitFailed}
	}
	defer sink.Close() //nolint:errcheck // every record in it is durable already
	h, err := host.New(ctx, host.Config{
		Temporal: temporal, Namespace: namespace, Redis: rdb, Sink: sink, SinkURL: location.String(),
		Worker: identity(o.name), Version: version.Version, Log: log, Slots: o.concurrency, Queue: o.queue, Grace: o.grace,
	})
	if err != nil {
		return sinkFailure(err)
	}
	log.Info("worker runs", zap.String("worker", identity(o.name)), zap.String("results", location.String()))
	if err := h.Run(ctx); err != nil {
		return &failure{err: err, code: exitFailed}
	}
	log.Info("worker stopped")
	return nil
}

// sinkFailure says what to do where other results are registered.
func sinkFailure(err error) *failure {
	var other *host.SinkError
	if errors.As(err, &other) {
		return &failure{err: err, hint: "start it with --results " + other.Registered, code: exitUsage}
	}
	return &failure{err: err, code: exitFailed}
}

// started makes identities of one name differ between restarts.
var started = time.Now().Unix()

func identity(name string) string {
	return name + "/" + strconv.Itoa(os.Getpid()) + "/" + strconv.FormatInt(started, 10)
}

const connectTimeout = 5 * time.Second

func dialRedis(ctx context.Context, o options, env map[string]string) (*redis.Client, error) {
	at := o.redis
	if at == "" {
		at = env["HOLDFAST_REDIS"]
	}
	if at == "" {
		at = "redis://127.0.0.1:6379"
	}
	opts, err := redis.ParseURL(at)
	if err != nil { // its text repeats the URL, password and all
		return nil, &failure{err: errors.New("the Redis URL is not valid"), hint: "give redis://[user:password@]host:port[/db]", code: exitUsage}
	}
	opts.DialTimeout = connectTimeout
	opts.ContextTimeoutEnabled = true // a call ends with its context
	opts.PoolSize = max(10, o.concurrency/8)
	rdb := redis.NewClient(opts)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		_ = rdb.Close()
		return nil, &failure{
			err:  fmt.Errorf("reach Redis at %s: %w", opts.Addr, err),
			hint: "check that it runs, or name another with --redis or HOLDFAST_REDIS", code: exitUnreachable,
		}
	}
	return rdb, nil
}

func dialTemporal(ctx context.Context, o options, env map[string]string, log *zap.Logger) (client.Client, string, error) {
	opts, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
		ConfigFileProfile: o.profile, EnvLookup: lookup(env),
	})
	if err != nil {
		return nil, "", &failure{err: fmt.Errorf("read Temporal's client configuration: %w", err), code: exitUsage}
	}
	if o.address != "" {
		opts.HostPort = o.address
	}
	if o.namespace != "" {
		opts.Namespace = o.namespace
	}
	if opts.Namespace == "" {
		opts.Namespace = client.DefaultNamespace
	}
	opts.Identity = identity(o.name)
	opts.Logger = host.SDKLogger(log)
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, "", &failure{
			err:  fmt.Errorf("reach Temporal at %s: %w", opts.HostPort, err),
			hint: "check that it runs, or name another with --address or TEMPORAL_ADDRESS", code: exitUnreachable,
		}
	}
	return c, opts.Namespace, nil
}

// lookup is an environment as the Temporal SDK's configuration loader reads it.
type lookup map[string]string

func (l lookup) Environ() []string {
	kvs := make([]string, 0, len(l))
	for k, v := range l {
		kvs = append(kvs, k+"="+v)
	}
	return kvs
}

func (l lookup) LookupEnv(key string) (string, bool) {
	v, ok := l[key]
	return v, ok
}
