package bench

import (
	"context"
	"fmt"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/workflows"
)

// product is a campaign, as shipped: loading its frontier and closing its results
// are part of what a URL costs.
type product struct{ b *Bench }

func (p *product) start() error { return nil } // the host runs already
func (p *product) stop()        {}

func (p *product) run(ctx context.Context, round string, n int) (done, error) {
	spec := p.b.spec("bench-" + round)
	entries, err := p.b.entries(round, n)
	if err != nil {
		return done{}, err
	}
	store := frontier.New(p.b.at.Redis, frontier.Options{})
	run, _, err := store.CreateRun(ctx, spec, frontier.Source{Digest: round, Label: "bench", Total: n}, frontier.CreateOptions{})
	if err != nil {
		return done{}, err
	}
	var d done
	for batch := 1; len(entries) > 0; batch++ {
		k := min(len(entries), frontier.BatchSize)
		if _, err := store.AddBatch(ctx, run.Name(), batch, entries[:k]); err != nil {
			return done{}, err
		}
		for _, e := range entries[:k] {
			d.ids = append(d.ids, crawl.Task{Campaign: run.Campaign, Run: run.Run, ID: e.ID}.WorkflowID())
		}
		entries = entries[k:]
	}
	if err := store.Seal(ctx, run.Name()); err != nil {
		return done{}, err
	}
	d.parent = run.Name()
	w, err := p.b.at.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run.Name(), TaskQueue: workflows.ControlQueue,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.CampaignAttr.ValueSet(run.Campaign)),
	}, workflows.CampaignWorkflow, workflows.CampaignInput{Campaign: run.Campaign, Run: run.Run})
	if err != nil {
		return done{}, fmt.Errorf("start campaign: %w", err)
	}
	var got workflows.Progress
	if err := w.Get(ctx, &got); err != nil {
		return done{}, fmt.Errorf("await campaign: %w", err)
	}
	if got.Completed != int64(n) {
		return done{}, fmt.Errorf("campaign of %d URLs: %d completed, %d failed", n, got.Completed, got.Failed)
	}
	return d, nil
}
