package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"holdfast/internal/crawl"
)

// maxRuns bounds the runs of a URL's workflow that explain follows back through
// continue-as-new.
const maxRuns = 50

// explainCommand shows every attempt of a URL, read from its workflow's history:
// no worker needs to run.
func (a *App) explainCommand() *cobra.Command {
	var campaign, method string
	var replay int
	cmd := &cobra.Command{
		Use:   "explain URL",
		Short: "Show every attempt of a URL: worker, proxy, answer, wait, why",
		Long: "Show every attempt of a URL, read from its workflow's history: the worker that made it, the proxy,\n" +
			"the answer, what was waited for afterwards and why. No worker needs to run.\n" +
			"Without --campaign, the newest run that knows the URL is shown.",
		Example: a.examples(
			"explain https://example.org/page",
			"explain https://example.org/page --campaign docs",
			"explain https://example.org/page --campaign docs-1 --output json"),
		Args: args("a URL"),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, given []string) error {
			if replay < 0 {
				return usage(helpHint(cmd), "--replay is %d; it starts at 0", replay)
			}
			request := crawl.Request{URL: given[0], Method: strings.ToUpper(method)}
			return a.explainURL(ctx, request, campaign, cmd.Flags().Changed("replay"), replay)
		}),
	}
	cmd.Flags().StringVar(&campaign, "campaign", "", "campaign, or one run of it (docs, docs-2)")
	cmd.Flags().StringVar(&method, "method", "", "the request's method (default GET)")
	cmd.Flags().IntVar(&replay, "replay", 0, "which replay of the URL (default: the latest)")
	return cmd
}

func (a *App) explainURL(ctx context.Context, request crawl.Request, campaign string, pick bool, replay int) error {
	entry, err := entryOf(request)
	if err != nil {
		return badURL(request.URL, err)
	}
	s, err := a.open(ctx, needAll)
	if err != nil {
		return err
	}
	defer s.close()
	run, info, err := s.findURL(ctx, campaign, entry.ID, request.URL)
	if err != nil {
		return err
	}
	task := crawl.Task{Campaign: run.Campaign, Run: run.Run, ID: entry.ID, Replay: info.Replay}
	if pick {
		task.Replay = replay
	}
	events, err := readHistory(ctx, s.temporal, task.WorkflowID())
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone) && info.State == crawl.Queued:
		return failed("not_started", "see what the campaign waits for: "+a.command("campaign status "+run.Name()),
			"%s is queued in %s: no workflow was started for it yet", request.URL, run.Name())
	case errors.As(err, &gone):
		return failed("no_history", "its record is kept: "+a.command("results show "+run.Name()+" "+request.URL),
			"%s is %s in %s, and Temporal no longer keeps the history of %s", request.URL, info.State, run.Name(), task.WorkflowID())
	case err != nil:
		return a.temporalFailure(s.target, "read history of "+task.WorkflowID(), err)
	}
	out := explain(events)
	out.WorkflowID = task.WorkflowID()
	if a.json() {
		return a.printJSON(out)
	}
	a.printExplained(out)
	return nil
}

// readHistory returns the events of a workflow, the runs before a
// continue-as-new first.
func readHistory(ctx context.Context, c client.Client, id string) ([]*historypb.HistoryEvent, error) {
	var all []*historypb.HistoryEvent
	runID := ""
	for range maxRuns {
		events, previous, err := readRun(ctx, c, id, runID)
		if err != nil {
			if all != nil {
				return all, nil // an earlier run past its retention
			}
			return nil, err
		}
		all = append(events, all...)
		if runID = previous; runID == "" {
			break
		}
	}
	return all, nil
}

func readRun(ctx context.Context, c client.Client, id, runID string) (events []*historypb.HistoryEvent, previous string, err error) {
	it := c.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, "", err
		}
		events = append(events, e)
		if started := e.GetWorkflowExecutionStartedEventAttributes(); started != nil {
			previous = started.GetContinuedExecutionRunId()
		}
	}
	return events, previous, nil
}

func (a *App) printExplained(x Explained) {
	a.printf("%s\n", oneLine(x.URL))
	state := a.paint(string(x.State))
	if x.Reason != "" {
		state += " (" + string(x.Reason) + ")"
	}
	a.printf("  %s, workflow %s, run %s\n", state, x.WorkflowID, dash(x.RunID))
	a.printf("  started %s", moment(x.Started))
	if x.Ended != nil {
		a.printf(", ended %s after %s", moment(*x.Ended), span(x.Ended.Sub(x.Started)))
	}
	a.printf("; %d events, %s of history\n", x.Events, size(int64(x.Bytes)))
	if x.Pending != "" {
		a.printf("  now: %s\n", x.Pending)
	}
	if len(x.Passes) == 0 {
		a.printf("  no attempt yet\n")
		return
	}
	a.printf("\n")
	g := a.newGrid("pass", "attempt", "at", "worker", "proxy", "answer", "took", "then waited", "why")
	g.right(1, 2)
	for _, p := range x.Passes {
		g.row(p.N, attemptOf(p), p.startedAt().Local().Format("15:04:05.000"), dash(p.Outcome.Worker), proxyOf(p),
			a.answerOf(p), tookOf(p), waitOf(p), whyOf(p))
	}
	g.print()
}

// startedAt is when the exchange began, or when its outcome was known.
func (p Pass) startedAt() time.Time {
	if p.Outcome.StartedMS > 0 {
		return time.UnixMilli(p.Outcome.StartedMS)
	}
	return p.At
}

func attemptOf(p Pass) string {
	if p.Attempt == 0 {
		return "-"
	}
	return fmt.Sprint(p.Attempt)
}

func proxyOf(p Pass) string {
	if p.Outcome.Proxy == "" && p.Attempt > 0 {
		return "direct"
	}
	return dash(p.Outcome.Proxy)
}

func (a *App) answerOf(p Pass) string {
	if p.Error != "" {
		return a.paint("error") + ": " + p.Error
	}
	o := p.Outcome
	parts := []string{}
	if o.Status > 0 {
		parts = append(parts, fmt.Sprint(o.Status))
	}
	parts = append(parts, a.paint(string(o.Class)))
	if o.Reason != "" && string(o.Reason) != string(o.Class) {
		parts = append(parts, string(o.Reason))
	}
	if o.Rule != "" {
		parts = append(parts, "rule "+oneLine(o.Rule))
	}
	return strings.Join(parts, " ")
}

func tookOf(p Pass) string {
	if p.Attempt == 0 {
		return "-"
	}
	return span(time.Duration(p.Outcome.TookMS) * time.Millisecond)
}

func waitOf(p Pass) string {
	switch {
	case p.Wait == nil:
		return "-"
	case p.Wait.Over:
		return span(p.Wait.For)
	}
	return "until " + p.Wait.Until.Local().Format("15:04:05")
}

func whyOf(p Pass) string {
	if p.Wait != nil && p.Wait.Why != "" {
		return p.Wait.Why
	}
	if p.Action != "" && p.Reason != "" {
		return fmt.Sprintf("%s: %s", p.Action, p.Reason)
	}
	if p.Outcome.Why != "" {
		return string(p.Outcome.Why)
	}
	return "-"
}
