package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast/internal/bench"
	"holdfast/starter/cli"
	"holdfast/workflows"
)

// benchServe is the hidden command that runs the benchmark's site and proxies.
const benchServe = "bench-serve"

// benchCommand measures what a URL costs.
func (p *program) benchCommand() *cobra.Command {
	var (
		o     bench.Options
		under string
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a URL costs, against the least that Temporal allows",
		Long: "Run three shapes in turn, round by round, over the same services: the floor (empty workflows), the\n" +
			"product (a campaign over a site on loopback through proxies on loopback, 20 kB a page, results on\n" +
			"disk), and the naive shape (the same steps as three regular activities of a child workflow). The\n" +
			"site and the proxies are processes of their own and are not counted; their share of the machine is\n" +
			"shown. On a busy machine the ratios mean something, the rates do not.\n\n" +
			"With --redis, a database of that Redis that is empty: it is emptied at the end. With --address, a\n" +
			"namespace on which no worker polls; its workflows stay until its retention ends.",
		Example: "  " + p.env.Name + " bench\n" +
			"  " + p.env.Name + " bench --count 2000 --rounds 5 --concurrency 256\n" +
			"  " + p.env.Name + " bench --latency 200ms --concurrency 300\n" +
			"  " + p.env.Name + " bench --redis redis://127.0.0.1:6379/9 --output json",
		Args: cobra.NoArgs,
		RunE: p.app.RunE(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"count", "rounds", "concurrency", "proxies"} {
				if n, _ := cmd.Flags().GetInt(name); n < 1 {
					return &cli.Failure{Code: "usage", Exit: cli.ExitUsage, Message: fmt.Sprintf("--%s is %d", name, n), Hint: "give at least 1"}
				}
			}
			if o.Faults < 0 || o.Faults > 1 || o.Latency < 0 {
				return &cli.Failure{Code: "usage", Exit: cli.ExitUsage, Message: "--faults or --latency is out of range", Hint: "--faults is a share between 0 and 1, --latency is not negative"}
			}
			if !bench.AreShapes(o.Shapes) {
				return &cli.Failure{Code: "usage", Exit: cli.ExitUsage, Message: "--shapes names one that is not there", Hint: "give some of floor, product and naive, separated by commas"}
			}
			return p.bench(ctx, o, under)
		}),
	}
	fs := cmd.Flags()
	fs.IntVar(&o.Count, "count", 500, "URLs of each shape in each round")
	fs.IntVar(&o.Rounds, "rounds", 3, "rounds")
	fs.IntVar(&o.Concurrency, "concurrency", 100, "URLs in flight")
	fs.IntVar(&o.Proxies, "proxies", 8, "proxies, which share the URLs in flight")
	fs.DurationVar(&o.Latency, "latency", 0, "how long the site thinks before each good page")
	fs.Float64Var(&o.Faults, "faults", 0, "share of URLs, 0 to 1, that fail once (503, cut, reset); the floor has none")
	fs.StringVar(&under, "under", "", "make the temporary folder for data and results in this one: the disk that is measured (default TMPDIR)")
	fs.StringSliceVar(&o.Shapes, "shapes", []string{bench.Floor, bench.Product, bench.Naive}, "shapes to run")
	fs.StringVar(&o.Profile, "cpuprofile", "", "write CPU profiles to files whose names start so")
	_ = fs.MarkHidden("cpuprofile")
	return cmd
}

func (p *program) bench(ctx context.Context, o bench.Options, under string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Program, o.Progress = []string{self, benchServe}, p.note
	dir, err := os.MkdirTemp(under, "holdfast-bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	var calls bench.Calls
	p.data = filepath.Join(dir, "data")
	so := startOptions{
		data: p.data, results: filepath.Join(dir, "results"), logLevel: "info", name: p.env.Name, noUI: true,
		address: p.flag("address", "TEMPORAL_ADDRESS"), redis: p.flag("redis", "HOLDFAST_REDIS"),
		namespace: p.flag("namespace", "TEMPORAL_NAMESPACE"), grace: 10 * time.Second,
		concurrency: bench.SlotsFor(o.Concurrency), openRedis: calls.Client, noWorker: true,
	}
	p.note("starting, in %s", dir)
	s, err := start(ctx, so)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	clean, err := p.alone(ctx, s, so)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	if err := s.startWorker(ctx, so); err != nil {
		return err
	}
	report, err := bench.Run(ctx, bench.Place{
		Temporal: s.temporal, Namespace: s.at.Namespace, Redis: s.redis, Calls: &calls, Sink: s.sink,
		Worker: workerName(), Slots: so.concurrency, OwnTemporal: so.address == "", OwnRedis: so.redis == "",
	}, o)
	if ctx.Err() != nil {
		return &cli.Failure{Code: "interrupted", Exit: cli.ExitInterrupted, Message: "interrupted; nothing is left behind", Err: ctx.Err()}
	}
	if err != nil {
		return err
	}
	if p.app.JSON() {
		line, err := json.Marshal(report)
		p.printf("%s\n", line)
		return err
	}
	p.printf("%s", benchTable(report))
	return nil
}

// alone refuses services that somebody else uses: the benchmark's URLs would go to
// other workers, its keys among others' keys. clean removes the keys.
func (p *program) alone(ctx context.Context, s *services, o startOptions) (clean func() error, err error) {
	clean = func() error { return nil }
	if o.redis != "" {
		n, err := s.redis.DBSize(ctx).Result()
		if err != nil {
			return nil, fmt.Errorf("count keys: %w", err)
		}
		if n > 0 {
			return nil, &cli.Failure{
				Code: "not_empty", Exit: cli.ExitUsage, Message: fmt.Sprintf("the Redis database holds %d keys", n),
				Hint: "name an empty database of it: redis://host:port/9",
			}
		}
		clean = func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
			defer cancel()
			return s.redis.FlushDB(ctx).Err()
		}
	}
	if o.address == "" {
		return clean, nil
	}
	q, err := s.temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: s.at.Namespace, TaskQueueType: enums.TASK_QUEUE_TYPE_WORKFLOW,
		TaskQueue: &taskqueue.TaskQueue{Name: workflows.TaskQueue, Kind: enums.TASK_QUEUE_KIND_NORMAL},
	})
	if err != nil {
		return nil, fmt.Errorf("look for other workers: %w", err)
	}
	for _, w := range q.GetPollers() {
		if time.Since(w.GetLastAccessTime().AsTime()) < time.Minute {
			return nil, &cli.Failure{
				Code: "other_workers", Exit: cli.ExitUsage, Message: fmt.Sprintf("worker %s polls this namespace", w.GetIdentity()),
				Hint: "name a namespace of the benchmark's own with --namespace",
			}
		}
	}
	return clean, nil
}

// benchServeCommand is what the benchmark runs as its site and its proxies.
func benchServeCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: benchServe, Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: p.app.RunE(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return bench.Serve(ctx, args, p.env.Stdin, p.env.Stdout)
		}),
	}
}
