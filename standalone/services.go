package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"holdfast/internal/embedded"
	"holdfast/internal/results"
	"holdfast/internal/version"
	"holdfast/starter/cli"
	"holdfast/worker/host"
)

// services are the parts that run in this process.
type services struct {
	stack    *embedded.Stack // nil where Temporal and Redis are both elsewhere
	temporal client.Client
	redis    *redis.Client
	sink     *results.Local
	log      *zap.Logger
	logFile  *os.File
	stopHost context.CancelFunc
	hostDone chan error
	// at is where the starter's commands find them, ui the Web UI's address.
	at      cli.Services
	ui      string
	results string
}

// startOptions say what to start.
type startOptions struct {
	data, results    string
	address, redis   string // elsewhere, if not empty
	namespace        string
	wellKnownPorts   bool
	noWorker, noUI   bool
	concurrency      int
	grace, retention time.Duration
	logLevel         string
	name             string
	// openRedis makes the client. Default redis.NewClient.
	openRedis func(*redis.Options) *redis.Client
}

// start runs what o asks for. Nothing runs after an error, which is a *cli.Failure
// for what a user can mend.
func start(ctx context.Context, o startOptions) (_ *services, err error) {
	s := &services{}
	defer func() {
		if err != nil {
			err = explain(err)
			_ = s.stop() // the first error is the one to show
		}
	}()
	level, err := zapcore.ParseLevel(o.logLevel)
	if err != nil {
		return nil, &cli.Failure{Code: "usage", Exit: cli.ExitUsage, Message: "--log-level is " + strconv.Quote(o.logLevel), Hint: "give debug, info, warn or error"}
	}
	if err := probe(ctx, o); err != nil {
		return nil, err
	}
	if err := s.startStack(ctx, o); err != nil {
		return nil, err
	}
	log, err := s.openLog(o.data, level)
	if err != nil {
		return nil, err
	}
	if err := s.connect(ctx, o, log); err != nil {
		return nil, err
	}
	s.log = log
	if o.noWorker {
		return s, nil
	}
	return s, s.startWorker(ctx, o)
}

func (s *services) startStack(ctx context.Context, o startOptions) error {
	s.at = cli.Services{Address: o.address, Namespace: o.namespace, Redis: o.redis, Started: o.name + " up"}
	if s.at.Namespace == "" {
		s.at.Namespace = client.DefaultNamespace
	}
	if o.address != "" && o.redis != "" {
		return nil
	}
	stack, err := embedded.Start(ctx, embedded.Options{
		Dir: o.data, Program: o.name, NoTemporal: o.address != "", NoRedis: o.redis != "", NoUI: o.noUI,
		WellKnownPorts: o.wellKnownPorts, Retention: o.retention, Namespace: s.at.Namespace,
	})
	if err != nil {
		return err
	}
	s.stack, s.ui = stack, stack.UIURL
	if o.address == "" {
		s.at.Address = stack.TemporalAddr
	}
	if o.redis == "" {
		s.at.Redis = stack.RedisURL
	}
	return nil
}

// openLog writes the worker's log into the data directory: the terminal is for
// the commands' own output.
func (s *services) openLog(data string, level zapcore.Level) (_ *zap.Logger, err error) {
	dir := filepath.Join(data, "logs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make log directory: %w", err)
	}
	s.logFile, err = os.OpenFile(filepath.Join(dir, "worker.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open worker log: %w", err)
	}
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(cfg), zapcore.AddSync(s.logFile), level)), nil
}

func (s *services) connect(ctx context.Context, o startOptions, log *zap.Logger) error {
	opts, err := redisOptions(s.at.Redis)
	if err != nil {
		return err
	}
	opts.PoolSize = 64
	opts.ContextTimeoutEnabled = true // a call ends with its context
	open := redis.NewClient
	if o.openRedis != nil {
		open = o.openRedis
	}
	s.redis = open(opts)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := s.redis.Ping(ctx).Err(); err != nil {
		return redisUnreachable(opts, err)
	}
	s.temporal, err = client.DialContext(ctx, client.Options{
		HostPort: s.at.Address, Namespace: s.at.Namespace, Identity: workerName(), Logger: host.SDKLogger(log),
	})
	if err != nil {
		return temporalUnreachable(s.at.Address, err)
	}
	return nil
}

// startWorker starts the worker, where start did not.
func (s *services) startWorker(ctx context.Context, o startOptions) error {
	dir, err := filepath.Abs(o.results)
	if err != nil {
		return fmt.Errorf("find results directory: %w", err)
	}
	location := results.Location{Scheme: "file", Dir: dir}
	if err := host.CheckSink(ctx, s.redis, location.String()); err != nil {
		return err
	}
	if s.sink, err = location.Open(results.LocalOptions{Worker: "standalone"}); err != nil {
		return fmt.Errorf("open results: %w", err)
	}
	s.results = dir
	h, err := host.New(ctx, host.Config{
		Temporal: s.temporal, Namespace: s.at.Namespace, Redis: s.redis, Sink: s.sink, SinkURL: location.String(),
		Worker: workerName(), Version: version.Version, Log: s.log, Slots: o.concurrency, Grace: o.grace,
	})
	if err != nil {
		return err
	}
	// The host drains when it is told to, not when the command is interrupted:
	// the command first says what goes on.
	hostCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stopHost, s.hostDone = stop, make(chan error, 1)
	go func() { s.hostDone <- h.Run(hostCtx) }()
	return nil
}

// stop ends the worker, then the services under it.
func (s *services) stop() error {
	var errs []error
	if s.stopHost != nil {
		s.stopHost()
		errs = append(errs, <-s.hostDone)
	}
	if s.sink != nil {
		errs = append(errs, s.sink.Close())
	}
	if s.temporal != nil {
		s.temporal.Close()
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Close())
	}
	if s.stack != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		errs = append(errs, s.stack.Close(ctx))
	}
	if s.logFile != nil {
		errs = append(errs, s.logFile.Close())
	}
	return errors.Join(errs...)
}

// explain turns the refusals of the parts into what a user is to see.
func explain(err error) error {
	var (
		locked  *embedded.LockedError
		version *embedded.VersionError
		foreign *embedded.ForeignDirError
		port    *embedded.PortError
		sink    *host.SinkError
	)
	refuse := func(code, hint string) error {
		return &cli.Failure{Code: code, Exit: cli.ExitUsage, Message: err.Error(), Hint: hint, Err: err}
	}
	switch {
	case errors.As(err, &locked):
		return refuse("data_locked", "its commands work from any terminal; or give another directory with --data")
	case errors.As(err, &version):
		return refuse("data_version", "")
	case errors.As(err, &foreign):
		return refuse("data_foreign", "")
	case errors.As(err, &port):
		return refuse("port_taken", "")
	case errors.As(err, &sink):
		return refuse("other_results", "go on with the registered results, or give another --data")
	}
	return err
}

// processStarted makes names of one process differ from those of the next.
var processStarted = time.Now().Unix()

func workerName() string {
	return "standalone/" + strconv.Itoa(os.Getpid()) + "/" + strconv.FormatInt(processStarted, 10)
}
