package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"holdfast/worker/host"
)

// stackFlags are the flags of the commands that start services.
type stackFlags struct {
	results     string
	concurrency int
	grace       time.Duration
	retention   time.Duration
	logLevel    string
}

// register adds the flags; results is the name of the one for the results folder.
func (f *stackFlags) register(cmd *cobra.Command, results string) {
	fs := cmd.Flags()
	fs.StringVar(&f.results, results, "results", "folder for the results")
	fs.IntVar(&f.concurrency, "slots", host.DefaultSlots, "URLs in flight in this process")
	fs.DurationVar(&f.grace, "grace", host.DefaultGrace, "time that fetches under way have to end after Ctrl-C")
	fs.DurationVar(&f.retention, "retention", 30*24*time.Hour, "how long the Web UI keeps ended URLs, some 10 KiB of disk each (a new data directory only)")
	fs.StringVar(&f.logLevel, "log-level", "info", "level of logs/worker.log in the data directory: debug, info, warn, error")
}

func (p *program) options(f *stackFlags) startOptions {
	return startOptions{
		data: p.absData(), results: f.results, concurrency: f.concurrency, grace: f.grace, retention: f.retention,
		logLevel: f.logLevel, address: p.flag("address", "TEMPORAL_ADDRESS"), redis: p.flag("redis", "HOLDFAST_REDIS"),
		namespace: p.flag("namespace", "TEMPORAL_NAMESPACE"), name: p.env.Name,
	}
}

// upCommand runs everything until Ctrl-C.
func (p *program) upCommand() *cobra.Command {
	flags := &stackFlags{}
	var noWorker, noUI bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in this process until Ctrl-C",
		Long: "Run Temporal, its Web UI, Redis and a worker in this process until Ctrl-C. All state is in the data\n" +
			"directory; started again on it, everything goes on where it was. --address and --redis replace the\n" +
			"parts in this process by real ones.",
		Example: "  " + p.env.Name + " up\n" +
			"  " + p.env.Name + " up --data /var/lib/holdfast --results /srv/results\n" +
			"  " + p.env.Name + " up --redis redis://127.0.0.1:6380",
		Args: cobra.NoArgs,
		RunE: p.app.RunE(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			o := p.options(flags)
			o.wellKnownPorts, o.noWorker, o.noUI = true, noWorker, noUI
			s, err := start(ctx, o)
			if err != nil {
				return err
			}
			p.running = s
			p.announce(s)
			<-ctx.Done()
			p.note("stopping: fetches under way may end; Ctrl-C again stops at once")
			return s.stop()
		}),
	}
	flags.register(cmd, "results")
	cmd.Flags().BoolVar(&noWorker, "no-worker", false, "run the services alone; workers come as processes of their own")
	cmd.Flags().BoolVar(&noUI, "no-ui", false, "leave the Web UI out")
	return cmd
}

// announce says where everything is and what to try next.
func (p *program) announce(s *services) {
	isNew := s.stack != nil && s.stack.IsNew
	if p.app.JSON() {
		line, _ := json.Marshal(map[string]any{
			"ui": s.ui, "temporal": s.at.Address, "namespace": s.at.Namespace, "redis": shownRedis(s),
			"results": s.results, "data": p.absData(), "new": isNew,
		})
		p.printf("%s\n", line)
		return
	}
	p.printf("Holdfast is up.\n\n")
	if s.ui != "" {
		p.printf("  Web UI    %s\n", s.ui)
	}
	p.printf("  Temporal  %s\n  Redis     %s\n", s.at.Address, shownRedis(s))
	if s.results != "" {
		p.printf("  results   %s\n", s.results)
	}
	state := "goes on"
	if isNew {
		state = "new"
	}
	p.printf("  data      %s (%s)\n\n", p.absData(), state)
	p.printf("Try, in a second terminal:\n\n")
	for _, line := range []string{
		"proxies import proxies.txt",
		"campaign start --name docs --urls urls.txt --contact you@example.org",
		"campaign watch docs",
	} {
		p.printf("  %s %s%s\n", p.env.Name, line, p.dataFlag())
	}
	p.printf("\nFor the starter and the temporal CLI:\n\n  export TEMPORAL_ADDRESS=%s HOLDFAST_REDIS=%s\n\n", s.at.Address, shownRedis(s))
	p.printf("Ctrl-C stops; the next start goes on where this one was.\n")
}

// shownRedis is Redis' address without the credentials that a given URL may hold.
func shownRedis(s *services) string {
	o := s.redis.Options()
	at := "redis://" + o.Addr
	if o.TLSConfig != nil {
		at = "rediss://" + o.Addr
	}
	if o.DB != 0 {
		at += "/" + strconv.Itoa(o.DB)
	}
	return at
}
