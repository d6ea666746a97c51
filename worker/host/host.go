// Package host runs Holdfast's workflows and activities against a Temporal
// cluster and a Redis: what the worker program and the all-in-one both do.
package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"holdfast/activities"
	"holdfast/internal/fetch"
	"holdfast/internal/frontier"
	"holdfast/proxypool"
	"holdfast/workflows"
)

// Config says what a host runs on.
type Config struct {
	// Temporal is a client that nothing else closes, Namespace its namespace. Required.
	Temporal  client.Client
	Namespace string
	// Redis holds the pool and the frontier. Required.
	Redis redis.UniversalClient
	// Sink takes the results; SinkURL is how it is registered. Required.
	Sink    activities.Sink
	SinkURL string
	// Worker names this process in records: name/pid/start. Required.
	Worker string
	// Version is Holdfast's own, for the User-Agent. Required.
	Version string
	// Log takes warnings, and one line an attempt at debug level. Required.
	Log *zap.Logger
	// Slots is the number of URLs in flight here. Default 256.
	Slots int
	// Queue, if set, makes this a fetch worker on that task queue alone, for
	// campaigns that name it as their fetch queue. Default: the URL and control queues.
	Queue string
	// Grace is how long fetches under way may go on after a stop. Default 40 s.
	Grace time.Duration
}

// Defaults of Config.
const (
	DefaultSlots = 256
	DefaultGrace = 40 * time.Second
)

// handOnBefore is how long before the end of the grace fetches still under way
// are given up, so that their leases go back before the process does.
const handOnBefore = 5 * time.Second

// Host is a running worker.
type Host struct {
	cfg     Config
	acts    *activities.Activities
	pool    *proxypool.Pool
	workers []worker.Worker
	fatal   chan error
}

// New checks the configuration and the registered sink, and prepares the workers.
// A worker whose sink is not the registered one is refused: the results of one
// deployment are in one place.
func New(ctx context.Context, cfg Config) (*Host, error) {
	if cfg.Slots <= 0 {
		cfg.Slots = DefaultSlots
	}
	if cfg.Grace <= 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.Queue == workflows.TaskQueue || cfg.Queue == workflows.ControlQueue {
		return nil, fmt.Errorf("%w: %s", ErrQueue, cfg.Queue)
	}
	store := frontier.New(cfg.Redis, frontier.Options{})
	if err := CheckSink(ctx, cfg.Redis, cfg.SinkURL); err != nil {
		return nil, err
	}
	registered, err := store.RegisterSink(ctx, cfg.SinkURL)
	if err != nil {
		return nil, fmt.Errorf("register results %s: %w", cfg.SinkURL, err)
	}
	if registered != cfg.SinkURL {
		return nil, &SinkError{Registered: registered, Wanted: cfg.SinkURL}
	}
	h := &Host{cfg: cfg, fatal: make(chan error, 1), pool: proxypool.New(cfg.Redis, proxypool.Options{})}
	h.acts = activities.New(activities.Config{
		Pool: h.pool, Frontier: store, Sink: cfg.Sink, Exchange: fetch.New(fetch.Options{}),
		Redis: cfg.Redis, Temporal: cfg.Temporal, Namespace: cfg.Namespace,
		Worker: cfg.Worker, Slots: cfg.Slots, Version: cfg.Version, Log: cfg.Log,
	})
	h.workers = h.build()
	return h, nil
}

// CheckSink returns a *SinkError if another results store than url is registered.
// It registers nothing: ask before the store is opened, which makes its folder.
func CheckSink(ctx context.Context, rdb redis.UniversalClient, url string) error {
	registered, err := frontier.New(rdb, frontier.Options{}).Sink(ctx)
	if err != nil {
		return fmt.Errorf("read registered results: %w", err)
	}
	if registered != "" && registered != url {
		return &SinkError{Registered: registered, Wanted: url}
	}
	return nil
}

// ErrQueue refuses Holdfast's own queues to a fetch worker: it would take steps
// that it cannot do.
var ErrQueue = errors.New("host: a fetch queue needs a name of its own")

// SinkError says that another results store is registered.
type SinkError struct{ Registered, Wanted string }

func (e *SinkError) Error() string {
	return fmt.Sprintf("results are registered as %s, this worker would write to %s", e.Registered, e.Wanted)
}

// service is what one task queue's worker does.
type service struct {
	queue      string
	workflows  map[string]any
	activities []string
}

// services returns what a host serves: the URL and control queues, or one fetch
// queue alone.
func services(fetchQueue string) []service {
	if fetchQueue != "" {
		return []service{{queue: fetchQueue, activities: []string{workflows.ActivityFetch}}}
	}
	return []service{
		{
			queue:      workflows.TaskQueue,
			workflows:  map[string]any{workflows.URLWorkflow: workflows.URL},
			activities: []string{workflows.ActivityFetch, workflows.ActivityFinish, workflows.ActivityAbort},
		},
		{
			queue:      workflows.ControlQueue,
			workflows:  map[string]any{workflows.CampaignWorkflow: workflows.Campaign},
			activities: []string{workflows.ActivityFeed, workflows.ActivityDrain, workflows.ActivityFinalize},
		},
	}
}

// build makes the workers. A fetch holds a workflow-task slot and a local-activity
// slot, so both have the same number; campaigns have a queue and slots of their own.
func (h *Host) build() []worker.Worker {
	named := h.acts.Named()
	var workers []worker.Worker
	for _, s := range services(h.cfg.Queue) {
		w := worker.New(h.cfg.Temporal, s.queue, h.options(s))
		for name, run := range s.workflows {
			w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
		}
		for _, name := range s.activities {
			w.RegisterActivityWithOptions(named[name], activity.RegisterOptions{Name: name})
		}
		workers = append(workers, w)
	}
	return workers
}

// WorkerOptions are those of the worker that takes URLs, but for its grace.
func WorkerOptions(identity string, slots int) worker.Options {
	return worker.Options{
		Identity:                                identity,
		MaxConcurrentWorkflowTaskExecutionSize:  slots,
		MaxConcurrentLocalActivityExecutionSize: slots,
		MaxConcurrentActivityExecutionSize:      slots,
		// The detector's second is short for a machine with noisy neighbours.
		DeadlockDetectionTimeout: 10 * time.Second,
	}
}

func (h *Host) options(s service) worker.Options {
	o := WorkerOptions(h.cfg.Worker, h.cfg.Slots)
	o.WorkerStopTimeout = h.cfg.Grace
	o.DisableWorkflowWorker = len(s.workflows) == 0
	o.OnFatalError = h.fail
	if s.queue == workflows.ControlQueue {
		// A feeder's heartbeats have to reach the server well within their timeout.
		o.MaxHeartbeatThrottleInterval = 3 * time.Second
		o.MaxConcurrentWorkflowTaskExecutionSize = 32
		o.MaxConcurrentLocalActivityExecutionSize = 32
		o.MaxConcurrentActivityExecutionSize = 64
	}
	return o
}

// fail notes that a worker has stopped by itself: its namespace is gone, or its
// credentials are.
func (h *Host) fail(err error) {
	select {
	case h.fatal <- err:
	default:
	}
}

// Run works until ctx ends, then drains: no new lease is taken, fetches under way
// may end, those still there shortly before the grace is over are handed on.
//
// It returns early, with the error, when a worker cannot go on.
func (h *Host) Run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	for _, work := range []func(context.Context){h.watchRuns, h.reap, h.reconcile, h.settleRecords} {
		group.Go(func() { work(background) })
	}
	defer group.Wait() // Redis and the sink are the caller's to close
	defer stop()
	for i, w := range h.workers {
		if err := w.Start(); err != nil {
			for _, started := range h.workers[:i] {
				started.Stop()
			}
			return fmt.Errorf("start worker: %w", err)
		}
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-h.fatal:
		err = fmt.Errorf("run worker: %w", err)
	}
	h.drain()
	return err
}

func (h *Host) drain() {
	h.acts.DrainFetches()
	handOn := time.AfterFunc(max(h.cfg.Grace-handOnBefore, 0), h.acts.HandOn)
	defer handOn.Stop()
	done := make(chan struct{}, len(h.workers))
	for _, w := range h.workers {
		go func() {
			w.Stop()
			done <- struct{}{}
		}()
	}
	for range h.workers {
		<-done
	}
}

// Periods of the background work.
const (
	watchEvery     = time.Second
	reapEvery      = 5 * time.Second
	reconcileEvery = 2 * time.Minute
	settleEvery    = 10 * time.Second
)

// watchRuns ends the fetches of canceled campaigns within a second.
func (h *Host) watchRuns(ctx context.Context) {
	every(ctx, watchEvery, func() {
		if err := h.acts.AbortCanceled(ctx); err != nil && !errors.Is(err, context.Canceled) {
			h.cfg.Log.Warn("watch campaigns", zap.Error(err))
		}
	})
}

// reap frees the leases of holders that are gone.
func (h *Host) reap(ctx context.Context) {
	every(ctx, reapEvery, func() {
		n, err := h.pool.Reap(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			h.cfg.Log.Warn("reap leases", zap.Error(err))
		}
		if n > 0 {
			h.cfg.Log.Info("reaped expired leases", zap.Int("leases", n))
		}
	})
}

// reconcile repairs what a lost half of the pool's index would leave for ever.
func (h *Host) reconcile(ctx context.Context) {
	every(ctx, reconcileEvery, func() {
		n, err := h.pool.Reconcile(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			h.cfg.Log.Warn("reconcile leases", zap.Error(err))
		}
		if n > 0 {
			h.cfg.Log.Warn("repaired the pool's index", zap.Int("leases", n))
		}
	})
}

// settleRecords drops lines of this worker whose record another one confirmed.
func (h *Host) settleRecords(ctx context.Context) {
	every(ctx, settleEvery, func() {
		if err := h.acts.SettleRecords(ctx); err != nil && !errors.Is(err, context.Canceled) {
			h.cfg.Log.Warn("settle records", zap.Error(err))
		}
	})
}

func every(ctx context.Context, d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
