package workflows_test

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast/workflows"
)

// TestReplayOfRecordedHistories replays what earlier versions recorded: a change
// that breaks one would block the URLs that are under way at a deploy. It fails
// where a workflow type has no history. CONTRIBUTING.md says how to record.
func TestReplayOfRecordedHistories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "replay_*.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	replayed := map[string]int{}
	for _, file := range files {
		h := readHistory(t, file)
		replayer := worker.NewWorkflowReplayer()
		replayer.RegisterWorkflowWithOptions(workflows.URL, workflow.RegisterOptions{Name: workflows.URLWorkflow})
		replayer.RegisterWorkflowWithOptions(workflows.Campaign, workflow.RegisterOptions{Name: workflows.CampaignWorkflow})
		if err := replayer.ReplayWorkflowHistory(nil, h); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
		replayed[h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()]++
	}
	for _, name := range []string{workflows.URLWorkflow, workflows.CampaignWorkflow} {
		if replayed[name] == 0 {
			t.Errorf("no recorded history of %s", name)
		}
	}
}

// TestReplayTellsAHistoryThatDoesNotFit shows that the test above can fail.
func TestReplayTellsAHistoryThatDoesNotFit(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob(filepath.Join("testdata", "replay_url_*.json.gz"))
	if len(files) == 0 {
		t.Fatal("no recorded history of a URL")
	}
	for _, file := range files {
		replayer := worker.NewWorkflowReplayer()
		replayer.RegisterWorkflowWithOptions(func(workflow.Context, workflows.URLInput) (workflows.URLResult, error) {
			return workflows.URLResult{Status: 299}, nil
		}, workflow.RegisterOptions{Name: workflows.URLWorkflow})
		if replayer.ReplayWorkflowHistory(nil, readHistory(t, file)) == nil {
			t.Errorf("%s replays with a workflow that does nothing", filepath.Base(file))
		}
	}
}

func readHistory(t *testing.T, file string) *history.History {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	h, err := client.HistoryFromJSON(z, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(h.GetEvents()) == 0 || strings.TrimSpace(file) == "" {
		t.Fatalf("%s is empty", file)
	}
	return h
}
