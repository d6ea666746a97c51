package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/lab"
	"holdfast/internal/results"
	"holdfast/proxypool"
	"holdfast/starter/cli"
	"holdfast/workflows"
)

// demoCommand shows a crawl through real proxies with faults.
func (p *program) demoCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a crawl through proxies with faults, on this machine alone",
		Long: "Crawl a site on loopback through loopback proxies, of which one refuses, one is slow and one has a wrong\n" +
			"password, with pages that answer 404, 403, 429 with Retry-After, 503, redirects, cut and oversize bodies.\n" +
			"It ends with what became of each kind, and exits 0 only if every URL ended as it should.\n\n" +
			"With --keep the Web UI stays up until Ctrl-C and the files stay in ./holdfast-demo.",
		Example: "  " + p.env.Name + " demo\n  " + p.env.Name + " demo --keep\n  " + p.env.Name + " demo --output json",
		Args:    cobra.NoArgs,
		RunE: p.app.RunE(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return p.demo(ctx, keep)
		}),
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the Web UI up until Ctrl-C, and the files in ./holdfast-demo")
	return cmd
}

func (p *program) demo(ctx context.Context, keep bool) (err error) {
	dir, clean, err := demoDir(keep)
	if err != nil {
		return err
	}
	defer clean()
	scene, err := lab.NewDemo(lab.DemoOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scene.Close()) }()

	p.data = filepath.Join(dir, "data")
	s, err := start(ctx, startOptions{
		data: p.data, results: filepath.Join(dir, "results"), logLevel: "debug", name: p.env.Name,
		address: p.flag("address", "TEMPORAL_ADDRESS"), redis: p.flag("redis", "HOLDFAST_REDIS"),
		namespace: p.flag("namespace", "TEMPORAL_NAMESPACE"), grace: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	p.running = s
	if s.ui != "" {
		p.note("Web UI: %s/namespaces/%s/workflows", s.ui, s.at.Namespace)
	}
	run, err := startDemo(ctx, s, scene)
	if err != nil {
		return err
	}
	if code := p.watch(ctx, run); code != cli.ExitDone && ctx.Err() == nil {
		return fmt.Errorf("watch the demo: exit %d", code)
	}
	if ctx.Err() != nil {
		return &cli.Failure{Code: "interrupted", Exit: cli.ExitInterrupted, Message: "interrupted", Err: ctx.Err()}
	}
	// The run has ended; its workflow closes the results.
	_ = s.temporal.GetWorkflow(ctx, run.Name(), "").Get(ctx, nil)
	report, err := gather(ctx, s, scene, run)
	if err != nil {
		return err
	}
	p.show(report)
	if keep {
		p.note("\nThe Web UI stays up; Ctrl-C ends it. Files: %s", dir)
		<-ctx.Done()
	}
	return report.verdict()
}

// demoDir returns the demo's folder and what removes it.
func demoDir(keep bool) (string, func(), error) {
	if keep {
		dir, err := filepath.Abs("holdfast-demo")
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if errors.Is(err, os.ErrExist) {
			return "", nil, &cli.Failure{Code: "exists", Exit: cli.ExitUsage, Message: dir + " is there already", Hint: "remove it, or leave out --keep"}
		}
		return dir, func() {}, err
	}
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// startDemo imports the proxies, loads the list and starts the campaign.
func startDemo(ctx context.Context, s *services, scene *lab.Demo) (frontier.RunInfo, error) {
	pool := proxypool.New(s.redis, proxypool.Options{})
	entries, err := proxypool.ParseList(strings.NewReader(scene.ProxyLines()), "demo", proxypool.ImportOptions{})
	if err != nil {
		return frontier.RunInfo{}, err
	}
	if _, err := pool.Import(ctx, entries, proxypool.ImportOptions{Source: "demo", MaxConcurrency: 4}); err != nil {
		return frontier.RunInfo{}, err
	}
	store := frontier.New(s.redis, frontier.Options{})
	var urls []frontier.Entry
	for _, u := range scene.URLs() {
		e, err := frontier.NewEntry(crawl.Request{URL: u}, 0, "")
		if err != nil {
			return frontier.RunInfo{}, err
		}
		urls = append(urls, e)
	}
	run, _, err := store.CreateRun(ctx, scene.Spec(), frontier.Source{Digest: "demo", Label: "demo", Total: len(urls)}, frontier.CreateOptions{NewRun: true})
	if err != nil {
		return frontier.RunInfo{}, err
	}
	if _, err := store.AddBatch(ctx, run.Name(), 1, urls); err != nil {
		return frontier.RunInfo{}, err
	}
	if err := store.Seal(ctx, run.Name()); err != nil {
		return frontier.RunInfo{}, err
	}
	_, err = s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run.Name(), TaskQueue: workflows.ControlQueue,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.CampaignAttr.ValueSet(run.Campaign)),
		StaticSummary:         "the demo",
	}, workflows.CampaignWorkflow, workflows.CampaignInput{Campaign: run.Campaign, Run: run.Run})
	return run, err
}

// watch shows the progress, on standard error.
func (p *program) watch(ctx context.Context, run frontier.RunInfo) int {
	env := p.env
	env.Stdout = env.Stderr
	args := []string{"campaign", "watch", run.Name()}
	if p.root.PersistentFlags().Lookup("quiet").Value.String() == "true" {
		args = append(args, "--quiet")
	}
	return cli.Run(ctx, args, env)
}

// gather reads what the demo came to.
func gather(ctx context.Context, s *services, scene *lab.Demo, run frontier.RunInfo) (*demoReport, error) {
	r := &demoReport{UI: s.ui, Failed: map[string]int{}, scene: scene, ends: map[string]lab.End{}, results: results.RunDir(s.results, run.Campaign, run.Run)}
	counts, err := frontier.New(s.redis, frontier.Options{}).Counts(ctx, run.Name())
	if err != nil {
		return nil, err
	}
	r.URLs, r.Completed = int(counts.Accepted), int(counts.Completed)
	r.Retries, r.ProxyFaults, r.Waits = int(counts.Retries), int(counts.ProxyFaults), int(counts.Waits)
	for rec, err := range results.Records(s.results, run.Campaign, run.Run, results.All) {
		if err != nil {
			return nil, err
		}
		end := lab.End{State: rec.State}
		if rec.Reason != nil {
			end.Reason = *rec.Reason
			r.Failed[string(end.Reason)]++
		}
		r.ends[rec.URL] = end
		r.attempts += len(rec.Attempts)
	}
	pool := proxypool.New(s.redis, proxypool.Options{})
	if r.Leases, err = pool.OpenLeases(ctx); err != nil {
		return nil, err
	}
	r.proxies, err = pool.Proxies(ctx)
	return r, err
}
