package cli

import (
	"encoding/json"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"holdfast/internal/crawl"
	"holdfast/workflows"
)

// Names in a local activity's marker, as the SDK writes them (1.50.0
// internal/internal_command_state_machine.go).
const (
	localMarker       = "LocalActivity"
	localMarkerData   = "data"
	localMarkerResult = "result"
)

// Pass is one pass of a URL's workflow: one lease, one Fetch, what it came to
// and what was waited for afterwards.
type Pass struct {
	// N counts the passes, Attempt the exchanges; Attempt is 0 where none took place.
	N       int           `json:"pass"`
	Attempt int           `json:"attempt,omitempty"`
	Outcome crawl.Outcome `json:"outcome"`
	// Action and Reason are the decision, where history holds it.
	Action crawl.Action `json:"action,omitempty"`
	Reason crawl.Reason `json:"reason,omitempty"`
	// Error says why Fetch itself gave no outcome.
	Error string `json:"error,omitempty"`
	// At is when the outcome entered history.
	At   time.Time `json:"at"`
	Wait *PassWait `json:"wait,omitempty"`
}

// PassWait is the durable timer after a pass.
type PassWait struct {
	For     time.Duration `json:"-"`
	ForMS   int64         `json:"for_ms"`
	Why     string        `json:"why,omitempty"`
	Started time.Time     `json:"started"`
	Until   time.Time     `json:"until"`
	// Over says that the timer fired or was canceled.
	Over bool `json:"over"`
}

// Explained is what a URL workflow's history tells.
type Explained struct {
	Campaign   string               `json:"campaign"`
	Run        int                  `json:"run"`
	ID         string               `json:"id"`
	URL        string               `json:"url"`
	Method     string               `json:"method"`
	Accepted   time.Time            `json:"accepted"`
	Replay     int                  `json:"replay"`
	WorkflowID string               `json:"workflow_id"`
	RunID      string               `json:"run_id"`
	Status     string               `json:"workflow_status"`
	State      crawl.State          `json:"state"`
	Reason     crawl.Reason         `json:"reason,omitempty"`
	Started    time.Time            `json:"started"`
	Ended      *time.Time           `json:"ended,omitempty"`
	Passes     []Pass               `json:"passes"`
	Result     *workflows.URLResult `json:"result,omitempty"`
	// Worker is the one that answered last: a worker that died in mid-fetch left no outcome.
	Worker string `json:"last_worker,omitempty"`
	// Pending says what the workflow does now, "" for nothing.
	Pending string `json:"pending,omitempty"`
	Events  int64  `json:"events"`
	Bytes   int    `json:"history_bytes"`
}

// reader builds an Explained from events in their order.
type reader struct {
	out       Explained
	conv      converter.DataConverter
	scheduled map[int64]*historypb.ActivityTaskScheduledEventAttributes
	timers    map[int64]int // timer's start event → its pass
	attempts  int
}

// explain reads a URL workflow's history: the events of its runs in their
// order, where it continued as new the earlier ones first. It never fails:
// what it does not know it leaves out.
func explain(events []*historypb.HistoryEvent) Explained {
	r := &reader{
		conv:      converter.GetDefaultDataConverter(),
		scheduled: map[int64]*historypb.ActivityTaskScheduledEventAttributes{},
		timers:    map[int64]int{},
	}
	r.out.State, r.out.Status, r.out.Passes = crawl.Running, "Running", []Pass{}
	for _, e := range events {
		r.event(e)
	}
	r.finish()
	return r.out
}

func (r *reader) event(e *historypb.HistoryEvent) {
	r.out.Events++
	r.out.Bytes += proto.Size(e)
	at := e.GetEventTime().AsTime()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		r.started(e.GetWorkflowExecutionStartedEventAttributes(), at)
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		r.out.Worker = or(e.GetWorkflowTaskStartedEventAttributes().GetIdentity(), r.out.Worker)
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		r.marker(e.GetMarkerRecordedEventAttributes(), at)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		r.schedule(e)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		r.activity(a.GetScheduledEventId(), a.GetResult(), nil, at)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		r.activity(a.GetScheduledEventId(), nil, a.GetFailure(), at)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		r.activity(a.GetScheduledEventId(), nil, a.GetFailure(), at)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		r.activity(e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), nil, &failurepb.Failure{Message: "canceled"}, at)
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		r.timer(e, at)
	case enumspb.EVENT_TYPE_TIMER_FIRED:
		r.timerOver(e.GetTimerFiredEventAttributes().GetStartedEventId())
	case enumspb.EVENT_TYPE_TIMER_CANCELED:
		r.timerOver(e.GetTimerCanceledEventAttributes().GetStartedEventId())
	default:
		r.closing(e, at)
	}
}

func (r *reader) started(a *historypb.WorkflowExecutionStartedEventAttributes, at time.Time) {
	var in workflows.URLInput
	_ = r.decode(a.GetInput(), &in)
	r.out.WorkflowID = or(a.GetWorkflowId(), r.out.WorkflowID)
	r.out.RunID = a.GetOriginalExecutionRunId()
	r.out.Campaign, r.out.Run, r.out.ID = in.Task.Campaign, in.Task.Run, in.Task.ID
	r.out.URL, r.out.Method, r.out.Replay = in.Task.URL, in.Task.EffectiveMethod(), in.Task.Replay
	r.out.Accepted = time.UnixMilli(in.Task.AcceptedMS)
	r.out.State, r.out.Status, r.out.Ended = crawl.Running, "Running", nil
	r.scheduled = map[int64]*historypb.ActivityTaskScheduledEventAttributes{}
	r.timers = map[int64]int{}
	if r.out.Started.IsZero() {
		r.out.Started = at
	}
	if in.Carry != nil && len(r.out.Passes) == 0 {
		// The earlier runs are gone (retention): what they handed on is what is known.
		for _, prev := range in.Carry.Attempts {
			r.out.Passes = append(r.out.Passes, passOf(prev))
			r.attempts = prev.N
		}
	}
}

// passOf shows an attempt that only the carried list remembers.
func passOf(a crawl.Attempt) Pass {
	started, _ := time.Parse(time.RFC3339, a.Started)
	p := Pass{N: a.N, Attempt: a.N, At: started, Outcome: crawl.Outcome{
		Class: a.Class, Reason: a.Reason, Status: a.Status, Proxy: a.Proxy, Region: a.Region,
		Worker: a.Worker, StartedMS: started.UnixMilli(), TookMS: a.TookMS,
	}}
	if a.ThenWaitMS > 0 {
		wait := time.Duration(a.ThenWaitMS) * time.Millisecond
		from := started.Add(time.Duration(a.TookMS) * time.Millisecond)
		p.Wait = &PassWait{For: wait, ForMS: a.ThenWaitMS, Why: a.Why, Started: from, Until: from.Add(wait), Over: true}
	}
	return p
}

// marker reads a local activity's marker.
func (r *reader) marker(a *historypb.MarkerRecordedEventAttributes, at time.Time) {
	if a.GetMarkerName() != localMarker {
		return
	}
	var data struct{ ActivityType string }
	if r.decode(a.GetDetails()[localMarkerData], &data) != nil {
		return
	}
	if data.ActivityType == workflows.ActivityFetch {
		r.fetched(a.GetDetails()[localMarkerResult], a.GetFailure(), at)
	}
}

// schedule keeps a regular activity's input and takes the decision out of Finish's.
func (r *reader) schedule(e *historypb.HistoryEvent) {
	a := e.GetActivityTaskScheduledEventAttributes()
	r.scheduled[e.GetEventId()] = a
	if a.GetActivityType().GetName() != workflows.ActivityFinish || len(r.out.Passes) == 0 {
		return
	}
	var in workflows.FinishInput
	if r.decode(a.GetInput(), &in) == nil {
		p := &r.out.Passes[len(r.out.Passes)-1]
		p.Action, p.Reason = in.Decision.Action, in.Decision.Reason
	}
}

// activity reads the end of a regular activity.
func (r *reader) activity(scheduled int64, result *commonpb.Payloads, failure *failurepb.Failure, at time.Time) {
	a := r.scheduled[scheduled]
	delete(r.scheduled, scheduled)
	if a.GetActivityType().GetName() == workflows.ActivityFetch {
		r.fetched(result, failure, at)
	}
}

// fetched adds a pass.
func (r *reader) fetched(result *commonpb.Payloads, failure *failurepb.Failure, at time.Time) {
	p := Pass{N: len(r.out.Passes) + 1, At: at}
	switch {
	case failure != nil:
		p.Error = oneLine(failureText(failure))
	case r.decode(result, &p.Outcome) != nil:
		p.Error = "the outcome cannot be read"
	}
	if p.Outcome.Class != "" && p.Outcome.Exchanged() {
		r.attempts++
		p.Attempt = r.attempts
	}
	r.out.Passes = append(r.out.Passes, p)
}

func (r *reader) timer(e *historypb.HistoryEvent, at time.Time) {
	if len(r.out.Passes) == 0 {
		return
	}
	wait := e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration()
	p := &r.out.Passes[len(r.out.Passes)-1]
	p.Wait = &PassWait{For: wait, ForMS: wait.Milliseconds(), Started: at, Until: at.Add(wait)}
	if summary := e.GetUserMetadata().GetSummary(); summary != nil {
		_ = r.conv.FromPayload(summary, &p.Wait.Why)
	}
	p.Wait.Why = oneLine(p.Wait.Why)
	r.timers[e.GetEventId()] = len(r.out.Passes) - 1
}

func (r *reader) timerOver(started int64) {
	if i, ok := r.timers[started]; ok && r.out.Passes[i].Wait != nil {
		r.out.Passes[i].Wait.Over = true
	}
}

// closing reads how the workflow's run ended.
func (r *reader) closing(e *historypb.HistoryEvent, at time.Time) {
	end := func(status string, state crawl.State, reason crawl.Reason) {
		r.out.Status, r.out.State, r.out.Reason, r.out.Ended = status, state, reason, &at
	}
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		end("Completed", crawl.Completed, "")
		var result workflows.URLResult
		if r.decode(e.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &result) == nil {
			r.out.Result = &result
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		f := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		reason := crawl.Reason(f.GetApplicationFailureInfo().GetType())
		state := crawl.Failed
		if reason == crawl.ReasonCrawlDelayTooLong { // what Decide skips
			state = crawl.Skipped
		}
		end("Failed", state, reason)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		end("Canceled", crawl.StateCanceled, "")
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		end("Terminated", crawl.Failed, crawl.ReasonTerminated)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		end("TimedOut", crawl.Failed, crawl.ReasonTimedOut)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		end("ContinuedAsNew", crawl.Running, "")
	}
}

// finish says what an open workflow does now.
func (r *reader) finish() {
	if r.out.Ended != nil {
		return
	}
	if n := len(r.out.Passes); n > 0 {
		if w := r.out.Passes[n-1].Wait; w != nil && !w.Over {
			r.out.State = crawl.Waiting
			r.out.Pending = fmt.Sprintf("waits until %s: %s", moment(w.Until), dash(w.Why))
			return
		}
	}
	for _, a := range r.scheduled {
		r.out.Pending = "runs " + a.GetActivityType().GetName()
		return
	}
	r.out.Pending = "a worker is at it, or it waits for one"
}

func (r *reader) decode(p *commonpb.Payloads, v any) error {
	if len(p.GetPayloads()) == 0 {
		return fmt.Errorf("decode payload: nothing there")
	}
	if err := r.conv.FromPayload(p.GetPayloads()[0], v); err != nil {
		return json.Unmarshal(p.GetPayloads()[0].GetData(), v)
	}
	return nil
}

// failureText is a failure's own message and its cause's.
func failureText(f *failurepb.Failure) string {
	text := f.GetMessage()
	if c := f.GetCause(); c != nil && c.GetMessage() != "" {
		text += ": " + c.GetMessage()
	}
	return text
}
