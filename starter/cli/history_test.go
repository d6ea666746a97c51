package cli_test

import (
	"encoding/json"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/starter/cli"
	"holdfast/workflows"
)

// story writes a workflow's history as a server would keep it.
type story struct {
	t      *testing.T
	at     time.Time
	events []*historypb.HistoryEvent
}

func newStory(t *testing.T, in workflows.URLInput) *story {
	s := &story{t: t, at: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)}
	s.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				Input: s.payloads(in), WorkflowId: in.Task.WorkflowID(), OriginalExecutionRunId: "0197-run",
			},
		},
	})
	return s
}

func (s *story) payloads(v any) *commonpb.Payloads {
	p, err := converter.GetDefaultDataConverter().ToPayloads(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *story) add(kind enumspb.EventType, e *historypb.HistoryEvent) int64 {
	e.EventType, e.EventId, e.EventTime = kind, int64(len(s.events)+1), timestamppb.New(s.at)
	s.events = append(s.events, e)
	return e.EventId
}

// local is the marker of a local activity, as the SDK records it.
func (s *story) local(activity string, result any, failure *failurepb.Failure) {
	details := map[string]*commonpb.Payloads{"data": s.payloads(struct {
		ActivityID, ActivityType string
		ReplayTime               time.Time
		Attempt                  int32
	}{"1", activity, s.at, 1})}
	if result != nil {
		details["result"] = s.payloads(result)
	}
	s.add(enumspb.EVENT_TYPE_MARKER_RECORDED, &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
			MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{MarkerName: "LocalActivity", Details: details, Failure: failure},
		},
	})
}

// regular is an activity on a task queue, from its schedule to its result.
func (s *story) regular(activity string, input, result any) {
	id := s.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: activity}, Input: s.payloads(input),
			},
		},
	})
	s.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: id, Result: s.payloads(result)},
		},
	})
}

// timer is a durable timer with its summary; over fires it.
func (s *story) timer(d time.Duration, summary string, over bool) {
	p, err := converter.GetDefaultDataConverter().ToPayload(summary)
	if err != nil {
		s.t.Fatal(err)
	}
	id := s.add(enumspb.EVENT_TYPE_TIMER_STARTED, &historypb.HistoryEvent{
		UserMetadata: &sdkpb.UserMetadata{Summary: p},
		Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
			TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{TimerId: "t", StartToFireTimeout: durationpb.New(d)},
		},
	})
	if !over {
		return
	}
	s.at = s.at.Add(d)
	s.add(enumspb.EVENT_TYPE_TIMER_FIRED, &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_TimerFiredEventAttributes{
			TimerFiredEventAttributes: &historypb.TimerFiredEventAttributes{StartedEventId: id},
		},
	})
}

func (s *story) completed(r workflows.URLResult) {
	s.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
			WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{Result: s.payloads(r)},
		},
	})
}

func (s *story) failed(reason crawl.Reason) {
	s.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
			WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{
				Message:     "failed",
				FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: string(reason)}},
			}},
		},
	})
}

// accepted puts a URL into campaign docs and returns its task.
func (b *bench) accepted(url string) crawl.Task {
	b.t.Helper()
	ctx := b.t.Context()
	e, err := frontier.NewEntry(crawl.Request{URL: url}, 0, "")
	if err != nil {
		b.t.Fatal(err)
	}
	spec := crawl.DefaultSpec()
	spec.Name = "docs"
	info, _, err := b.frontier().CreateRun(ctx, spec, frontier.Source{Digest: "d", Label: "urls.txt", Total: 1}, frontier.CreateOptions{NewRun: true})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.frontier().AddBatch(ctx, info.Name(), 1, []frontier.Entry{e}); err != nil {
		b.t.Fatal(err)
	}
	return crawl.Task{Behaviour: crawl.Behaviour, Campaign: "docs", Run: info.Run, ID: e.ID, URL: url, Host: e.Host, AcceptedMS: 1764556800000}
}

const page = "https://example.org/page"

func (b *bench) explained(args ...string) cli.Explained {
	b.t.Helper()
	a := b.run(append([]string{"explain", page, "--output", "json"}, args...)...).wants(b.t, 0)
	var x cli.Explained
	if err := json.Unmarshal([]byte(a.stdout), &x); err != nil {
		b.t.Fatalf("%v in %q", err, a.stdout)
	}
	return x
}

func TestExplainTellsEveryAttemptOfALocalHistory(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	task := b.accepted(page)
	s := newStory(t, workflows.URLInput{Task: task})
	s.local(workflows.ActivityFetch, crawl.Outcome{Class: crawl.Deferred, WaitMS: 3000, Why: crawl.WaitHostTurn, Worker: "w1"}, nil)
	s.local(workflows.ActivityFinish, nil, nil)
	s.timer(3*time.Second, "host turn in 3 s", true)
	s.local(workflows.ActivityFetch, crawl.Outcome{Class: crawl.TargetTransient, Status: 429, Proxy: "p17", Region: "de", Worker: "w3/812/1", StartedMS: s.at.UnixMilli(), TookMS: 310, RetryAfterMS: 7000}, nil)
	s.timer(7*time.Second, "Retry-After 7 s, 429 via p17", true)
	s.local(workflows.ActivityFetch, nil, &failurepb.Failure{Message: "redis unavailable"})
	s.timer(5*time.Second, "redis unavailable", true)
	s.local(workflows.ActivityFetch, crawl.Outcome{Class: crawl.OK, Status: 200, Proxy: "p03", Worker: "w1/77/1", StartedMS: s.at.UnixMilli(), TookMS: 205, Bytes: 20480, SHA256: "ab12"}, nil)
	s.completed(workflows.URLResult{Status: 200, Attempts: 2, Bytes: 20480})
	b.fake.histories[task.WorkflowID()] = s.events

	x := b.explained()
	if x.State != crawl.Completed || x.WorkflowID != task.WorkflowID() || x.RunID != "0197-run" || x.Campaign != "docs" || len(x.Passes) != 4 || x.Events != int64(len(s.events)) || x.Bytes == 0 {
		t.Fatalf("%+v", x)
	}
	for i, want := range []struct {
		attempt int
		proxy   string
		waitMS  int64
		why     string
		err     string
	}{
		{0, "", 3000, "host turn in 3 s", ""},
		{1, "p17", 7000, "Retry-After 7 s, 429 via p17", ""},
		{0, "", 5000, "redis unavailable", "redis unavailable"},
		{2, "p03", 0, "", ""},
	} {
		p := x.Passes[i]
		if p.N != i+1 || p.Attempt != want.attempt || p.Outcome.Proxy != want.proxy || p.Error != want.err {
			t.Errorf("pass %d: %+v", i+1, p)
		}
		switch {
		case want.waitMS == 0 && p.Wait != nil:
			t.Errorf("pass %d waited: %+v", i+1, p.Wait)
		case want.waitMS > 0 && (p.Wait == nil || p.Wait.ForMS != want.waitMS || p.Wait.Why != want.why || !p.Wait.Over):
			t.Errorf("pass %d: wait %+v", i+1, p.Wait)
		}
	}
	b.run("explain", page, "--campaign", "docs").wants(t, 0).says(t, "w3/812/1", "p17", "429", "Retry-After 7 s", "310 ms", "200 ok", "completed")
	b.run("explain", page, "--campaign", "docs-1").wants(t, 0)
}

func TestExplainReadsRegularActivitiesAndFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	task := b.accepted(page)
	s := newStory(t, workflows.URLInput{Task: task})
	out := crawl.Outcome{Class: crawl.TargetPermanent, Reason: "http_404", Status: 404, Worker: "w9"}
	s.regular(workflows.ActivityFetch, workflows.FetchInput{Task: task}, out)
	s.regular(workflows.ActivityFinish, workflows.FinishInput{Task: task, Outcome: out, Decision: crawl.Decision{Action: crawl.Fail, Reason: "http_404"}}, nil)
	s.failed("http_404")
	b.fake.histories[task.WorkflowID()] = s.events

	x := b.explained()
	if x.State != crawl.Failed || x.Reason != "http_404" || len(x.Passes) != 1 || x.Passes[0].Action != crawl.Fail || x.Passes[0].Outcome.Status != 404 || x.Ended == nil {
		t.Errorf("%+v", x)
	}
	b.run("explain", page).wants(t, 0).says(t, "failed (http_404)", "direct", "fail: http_404")
}

func TestExplainShowsWhatAnOpenURLWaitsFor(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	task := b.accepted(page)
	s := newStory(t, workflows.URLInput{Task: task})
	s.at = time.Now()
	s.local(workflows.ActivityFetch, crawl.Outcome{Class: crawl.TargetTransient, Status: 503, Proxy: "p1", Worker: "w1"}, nil)
	s.timer(6*time.Hour, "Retry-After 6 h, 503 via p1", false)
	b.fake.histories[task.WorkflowID()] = s.events
	if x := b.explained(); x.State != crawl.Waiting || x.Ended != nil || x.Passes[0].Wait.Over {
		t.Errorf("%+v", x)
	}
	b.run("explain", page).wants(t, 0).says(t, "now: waits until", "Retry-After 6 h")
}

func TestExplainFollowsAURLBackThroughContinueAsNew(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	task := b.accepted(page)
	first := newStory(t, workflows.URLInput{Task: task})
	first.local(workflows.ActivityFetch, crawl.Outcome{Class: crawl.Ambiguous, Reason: crawl.ReasonReset, Proxy: "p1"}, nil)
	second := newStory(t, workflows.URLInput{Task: task, Carry: &workflows.URLCarry{Pass: 1, Attempts: []crawl.Attempt{{N: 1, Class: crawl.Ambiguous, Proxy: "p1", Started: "2026-12-01T10:00:00.000Z"}}}})
	second.events[0].GetWorkflowExecutionStartedEventAttributes().ContinuedExecutionRunId = "earlier"
	second.local(workflows.ActivityFetch, crawl.Outcome{Class: crawl.OK, Status: 200, Proxy: "p2"}, nil)
	second.completed(workflows.URLResult{Status: 200})
	b.fake.histories[task.WorkflowID()] = second.events

	// The earlier run is past its retention: what it carried on is shown.
	x := b.explained()
	if len(x.Passes) != 2 || x.Passes[0].Outcome.Proxy != "p1" || x.Passes[1].Attempt != 2 {
		t.Errorf("%+v", x.Passes)
	}
	b.fake.histories[task.WorkflowID()+"@earlier"] = first.events
	x = b.explained()
	if len(x.Passes) != 2 || x.Passes[0].Outcome.Reason != crawl.ReasonReset || x.Passes[1].Outcome.Proxy != "p2" {
		t.Errorf("%+v", x.Passes)
	}
}

func TestExplainSaysWhyThereIsNothingToExplain(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.run("explain", page).wants(t, 2).says(t, "no campaign knows "+page)
	b.run("explain", page, "--campaign", "docs").wants(t, 2).says(t, "no campaign \"docs\"")
	b.accepted(page)
	b.run("explain", page).wants(t, 1).says(t, "queued in docs-1", "campaign status docs-1")
	b.run("explain", "example.org").wants(t, 2)
}
