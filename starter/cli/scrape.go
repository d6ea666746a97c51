package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/workflows"
)

// adhoc is the campaign of URLs that are scraped one by one.
const adhoc = "adhoc"

// scrapeCommand fetches URLs now, by the same path as a campaign.
func (a *App) scrapeCommand() *cobra.Command {
	var body, detach bool
	flags := &specFlags{}
	cmd := &cobra.Command{
		Use:   "scrape URL...",
		Short: "Fetch URLs now, wait and print their records",
		Long: "Fetch URLs now by the same path as a campaign's (campaign \"adhoc\"), wait for them and print their records.\n" +
			"Exit 1 if one of them did not succeed. After Ctrl-C they go on by themselves.",
		Example: a.examples(
			"scrape https://example.org/ --contact you@example.org",
			"scrape https://example.org/ --body --contact you@example.org > page.html",
			"scrape http://127.0.0.1:8080/a http://127.0.0.1:8080/b --direct --output json",
			"scrape https://example.org/ --detach --contact you@example.org"),
		Args: someArgs("URL"),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, given []string) error {
			if body && detach {
				return usage(helpHint(cmd), "--body waits for the page, --detach does not wait; give one of the two")
			}
			spec, err := flags.spec(cmd, adhoc, a.contact())
			if err != nil {
				return err
			}
			in, entries, err := urlSeeds(ctx, given)
			if err != nil {
				return err
			}
			st := &start{spec: spec, seeds: in, newRun: true}
			if err := a.prepare(st); err != nil {
				return err
			}
			s, err := a.open(ctx, needAll)
			if err != nil {
				return err
			}
			defer s.close()
			run, err := s.startAdhoc(ctx, st, entries)
			if err != nil {
				return err
			}
			if detach {
				return s.printDetached(run, entries)
			}
			return s.printScraped(ctx, run, entries, body)
		}),
	}
	cmd.Flags().BoolVar(&body, "body", false, "print the decoded pages instead of the records")
	cmd.Flags().BoolVar(&detach, "detach", false, "print the workflow ids and do not wait")
	flags.register(cmd)
	return cmd
}

// startAdhoc starts a run for the URLs. While an earlier one is open, they join
// it if it was started with the same flags.
func (s *session) startAdhoc(ctx context.Context, st *start, entries []frontier.Entry) (frontier.RunInfo, error) {
	for range 5 {
		started, err := s.start(ctx, st)
		if err == nil {
			return s.frontier.Run(ctx, started.Name)
		}
		if !errors.Is(err, frontier.ErrRunOpen) && !errors.Is(err, frontier.ErrInputDiffers) {
			return frontier.RunInfo{}, err
		}
		info, joined, err := s.join(ctx, st, entries, err)
		if err != nil || joined {
			return info, err
		}
	}
	return frontier.RunInfo{}, failed("busy", "try again", "other scrapes of campaign %s come and go too fast", adhoc)
}

// join adds the URLs to the open run; joined is false where it ended meanwhile.
func (s *session) join(ctx context.Context, st *start, entries []frontier.Entry, why error) (frontier.RunInfo, bool, error) {
	info, err := s.frontier.Latest(ctx, adhoc)
	if err != nil {
		return info, false, s.redisFailure(err)
	}
	if !info.State.Open() {
		return info, false, nil
	}
	if !sameSpec(info.Spec, st.spec) {
		return info, false, why
	}
	_, err = s.frontier.Add(ctx, info.Name(), entries)
	if errors.Is(err, frontier.ErrRunEnded) {
		return info, false, nil
	}
	if err != nil {
		return info, false, s.redisFailure(err)
	}
	if !info.Sealed {
		// A scrape that was killed before its run was complete left it so.
		if err := s.frontier.Seal(ctx, info.Name()); err != nil {
			return info, false, s.redisFailure(err)
		}
	}
	return info, true, s.startWorkflow(ctx, info)
}

func sameSpec(a, b crawl.Spec) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// Detached is a URL that was handed over.
type Detached struct {
	URL        string `json:"url"`
	Campaign   string `json:"campaign"`
	Run        int    `json:"run"`
	ID         string `json:"id"`
	WorkflowID string `json:"workflow_id"`
}

func (s *session) printDetached(run frontier.RunInfo, entries []frontier.Entry) error {
	for _, e := range entries {
		d := Detached{
			URL: e.Request.URL, Campaign: run.Campaign, Run: run.Run, ID: e.ID,
			WorkflowID: crawl.Task{Campaign: run.Campaign, Run: run.Run, ID: e.ID}.WorkflowID(),
		}
		if s.app.json() {
			if err := s.app.printJSON(d); err != nil {
				return err
			}
			continue
		}
		s.app.printf("%s  %s\n", d.WorkflowID, oneLine(d.URL))
	}
	return nil
}

// printScraped waits for each URL and prints its record as it ends.
func (s *session) printScraped(ctx context.Context, run frontier.RunInfo, entries []frontier.Entry, body bool) error {
	s.warnNoWorkers(ctx)
	bad := 0
	done := map[string]bool{}
	for _, e := range entries {
		if done[e.ID] {
			continue // the same page by another name
		}
		done[e.ID] = true
		u, err := s.waitFor(ctx, run, e.ID)
		if err != nil {
			return err
		}
		if u.State != crawl.Completed {
			bad++
		}
		if err := s.printOne(ctx, run, u, body); err != nil {
			return err
		}
	}
	if bad > 0 {
		return failed("not_completed", "see every attempt: "+s.app.command("explain "+entries[0].Request.URL+" --campaign "+run.Name()),
			"%d of %d URLs did not succeed", bad, len(done))
	}
	return nil
}

// waitFor waits until a URL has ended.
func (s *session) waitFor(ctx context.Context, run frontier.RunInfo, id string) (frontier.URLInfo, error) {
	tick := time.NewTicker(min(s.app.env.Every, 200*time.Millisecond))
	defer tick.Stop()
	for {
		u, err := s.frontier.URL(ctx, run.Name(), id)
		switch {
		case err == nil && u.State.Terminal():
			return u, nil
		case ctx.Err() != nil:
			return u, interrupted(s.app.command("campaign watch "+run.Name()), "%s goes on by itself", run.Name())
		case err != nil:
			return u, s.redisFailure(err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// printOne prints a URL's record: the sink's own where it can be read from
// here, else what the workflow's history tells.
func (s *session) printOne(ctx context.Context, run frontier.RunInfo, u frontier.URLInfo, body bool) error {
	dir, err := s.sinkDir(ctx)
	if err != nil && (body || !errors.Is(err, errElsewhere)) {
		return err
	}
	var r *crawl.Record
	if dir != "" {
		if r, err = findRecord(dir, run, u); err != nil {
			return err
		}
	}
	if r == nil {
		if body {
			return failed("no_record", "", "the record of %s is not in %s", oneLine(u.URL), dir)
		}
		if r, err = s.recordFromHistory(ctx, run, u); err != nil {
			return err
		}
	}
	switch {
	case body && r.State == crawl.Completed:
		return writeBody(dir, r, s.app.env.Stdout)
	case body:
		s.app.note("%s is %s%s", oneLine(r.URL), r.State, reasonIn(r))
		return nil
	case s.app.json():
		return s.app.printJSON(r)
	}
	s.app.printRecord(r, dir)
	return nil
}

// recordFromHistory rebuilds what history holds of a record.
func (s *session) recordFromHistory(ctx context.Context, run frontier.RunInfo, u frontier.URLInfo) (*crawl.Record, error) {
	task := crawl.Task{Campaign: run.Campaign, Run: run.Run, ID: u.ID, Replay: u.Replay}
	events, err := readHistory(ctx, s.temporal, task.WorkflowID())
	if err != nil {
		return nil, s.app.temporalFailure(s.target, "read history of "+task.WorkflowID(), err)
	}
	r := explain(events).record()
	r.State = u.State
	if u.Reason != "" {
		r.Reason = &u.Reason
	}
	return &r, nil
}

// warnNoWorkers says so where nobody would take up the work.
func (s *session) warnNoWorkers(ctx context.Context) {
	d, err := s.temporal.DescribeTaskQueue(ctx, workflows.ControlQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err == nil && len(d.GetPollers()) == 0 {
		s.app.note("%s", fmt.Sprintf("no worker asks for tasks on %s: this waits until one does", workflows.ControlQueue))
	}
}
