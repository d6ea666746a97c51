package workflows_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast/internal/crawl"
	"holdfast/workflows"
)

// script stands in for the activities: it answers each pass with the next
// outcome, and keeps what it was asked. What the activities do themselves is
// tested against real services elsewhere; here it is the order of steps.
type script struct {
	mu       sync.Mutex
	answers  []func(context.Context, workflows.FetchInput) (crawl.Outcome, error)
	fetches  []workflows.FetchInput
	finishes []workflows.FinishInput
	aborts   []string
	// failFinish fails this many local Finishes.
	failFinish int
	aborted    chan struct{}
}

func (s *script) fetch(ctx context.Context, in workflows.FetchInput) (crawl.Outcome, error) {
	s.mu.Lock()
	n := len(s.fetches)
	s.fetches = append(s.fetches, in)
	s.mu.Unlock()
	if in.Settle {
		return crawl.Outcome{Class: crawl.Canceled}, nil
	}
	return s.answers[min(n, len(s.answers)-1)](ctx, in)
}

func (s *script) finish(_ context.Context, in workflows.FinishInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failFinish > 0 {
		s.failFinish--
		return errors.New("redis is away")
	}
	s.finishes = append(s.finishes, in)
	return nil
}

func (s *script) abort(_ context.Context, in workflows.AbortInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborts = append(s.aborts, in.LeaseID)
	if len(s.aborts) == 1 && s.aborted != nil {
		close(s.aborted)
	}
	return nil
}

func is(o crawl.Outcome) func(context.Context, workflows.FetchInput) (crawl.Outcome, error) {
	return func(context.Context, workflows.FetchInput) (crawl.Outcome, error) { return o, nil }
}

var (
	page    = is(crawl.Outcome{Class: crawl.OK, Status: 200, Proxy: "p1", Held: true})
	missing = is(crawl.Outcome{Class: crawl.TargetPermanent, Status: 404, Proxy: "p1", Held: true})
	dead    = is(crawl.Outcome{Class: crawl.ProxyFault, Reason: crawl.ReasonConnectRefused, Proxy: "p9", Held: true})
	busy    = is(crawl.Outcome{Class: crawl.TargetTransient, Status: 429, RetryAfterMS: 6 * 3600_000, Proxy: "p1", Held: true})
	noRedis = func(context.Context, workflows.FetchInput) (crawl.Outcome, error) {
		return crawl.Outcome{}, errors.New("refused")
	}
	deferral = is(crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitHostTurn, WaitMS: 5000})
)

func setup(t *testing.T, s *script, answers ...func(context.Context, workflows.FetchInput) (crawl.Outcome, error)) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	s.answers = answers
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	env.RegisterActivityWithOptions(s.fetch, activity.RegisterOptions{Name: workflows.ActivityFetch})
	env.RegisterActivityWithOptions(s.finish, activity.RegisterOptions{Name: workflows.ActivityFinish})
	env.RegisterActivityWithOptions(s.abort, activity.RegisterOptions{Name: workflows.ActivityAbort})
	return env
}

func input() workflows.URLInput {
	return workflows.URLInput{Task: crawl.Task{Behaviour: 1, Campaign: "docs", Run: 1, ID: "9f2c", URL: "https://example.org/", Host: "example.org:443"}}
}

func reasonOf(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Type()
	}
	return ""
}

func TestURLCompletesWithItsPage(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := setup(t, s, page)
	env.ExecuteWorkflow(workflows.URL, input())
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(s.fetches) != 1 || len(s.finishes) != 1 {
		t.Fatalf("%d fetches, %d finishes; want one of each", len(s.fetches), len(s.finishes))
	}
	if f := s.finishes[0]; f.LeaseID != s.fetches[0].LeaseID || f.Decision.Action != crawl.Done || len(f.Attempts) != 1 {
		t.Errorf("finish %+v", f)
	}
}

func TestURLFailsWithATypedReason(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := setup(t, s, missing)
	env.ExecuteWorkflow(workflows.URL, input())
	if got := reasonOf(env.GetWorkflowError()); got != "http_404" {
		t.Errorf("failure type %q, want http_404", got)
	}
}

func TestSixHourRetryAfterIsOneDurableTimer(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := setup(t, s, busy, page)
	var timers []time.Duration
	env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { timers = append(timers, d) })
	env.ExecuteWorkflow(workflows.URL, input())
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(timers) != 1 || timers[0] != 6*time.Hour {
		t.Errorf("timers %v, want one of 6 h", timers)
	}
	if len(s.finishes) != 2 || s.finishes[0].Decision.Summary != "Retry-After 21600 s, 429 via p1" {
		t.Errorf("finishes %+v", s.finishes)
	}
	last := s.finishes[1].Attempts
	if len(last) != 2 || last[0].ThenWaitMS != 6*3600_000 {
		t.Errorf("attempts %+v", last)
	}
}

func TestEveryPassHasALeaseOfItsOwnAndIsFinished(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := setup(t, s, deferral, dead, dead, page)
	env.ExecuteWorkflow(workflows.URL, input())
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, f := range s.fetches {
		if seen[f.LeaseID] {
			t.Errorf("lease %s is used twice", f.LeaseID)
		}
		seen[f.LeaseID] = true
		if s.finishes[i].LeaseID != f.LeaseID {
			t.Errorf("pass %d fetched under %s and finished %s", i+1, f.LeaseID, s.finishes[i].LeaseID)
		}
	}
	if avoid := s.fetches[3].Avoid; len(avoid) == 0 || avoid[0] != "p9" {
		t.Errorf("the last pass avoids %v, want p9", avoid)
	}
	if !s.fetches[1].Parked || s.fetches[2].Parked {
		t.Errorf("parked: %v after a wait, %v after none", s.fetches[1].Parked, s.fetches[2].Parked)
	}
}

func TestRedisAwayIsADurableWaitThatSpendsNothing(t *testing.T) {
	t.Parallel()
	s := &script{failFinish: 2}
	env := setup(t, s, noRedis, noRedis, page)
	var timers []time.Duration
	env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { timers = append(timers, d) })
	env.ExecuteWorkflow(workflows.URL, input())
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	last := s.finishes[len(s.finishes)-1]
	if last.Ledgers.Attempts != 0 || last.Ledgers.ProxyFaults != 0 || last.Ledgers.Waited != 0 {
		t.Errorf("ledgers %+v, want nothing spent", last.Ledgers)
	}
	for _, d := range timers {
		if d < time.Second {
			t.Errorf("a timer of %v: that spins", d)
		}
	}
}

func TestCancelInAWaitClosesCanceledAndAsksNoSite(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := setup(t, s, busy, page)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.ExecuteWorkflow(workflows.URL, input())
	if err := env.GetWorkflowError(); !isCanceled(err) {
		t.Fatalf("closed with %v, want canceled", err)
	}
	if len(s.fetches) != 2 || !s.fetches[1].Settle {
		t.Fatalf("fetches %+v: the pass after the cancel must settle", s.fetches)
	}
	if last := s.finishes[len(s.finishes)-1]; last.Decision.Action != crawl.Stopped {
		t.Errorf("last finish %+v", last.Decision)
	}
}

func TestCancelInAFetchAsksItsHolderToStopAndWaitsForIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends     crawl.Outcome
		canceled bool
	}{
		"the exchange was cut off":    {crawl.Outcome{Class: crawl.Canceled, Held: true}, true},
		"the exchange had ended well": {crawl.Outcome{Class: crawl.OK, Status: 200, Held: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{aborted: make(chan struct{})}
			env := setup(t, s)
			s.answers = []func(context.Context, workflows.FetchInput) (crawl.Outcome, error){
				func(ctx context.Context, _ workflows.FetchInput) (crawl.Outcome, error) {
					env.CancelWorkflow()
					select {
					case <-s.aborted:
						return c.ends, nil
					case <-ctx.Done():
						return crawl.Outcome{}, ctx.Err()
					}
				},
			}
			env.ExecuteWorkflow(workflows.URL, input())
			if got := isCanceled(env.GetWorkflowError()); got != c.canceled {
				t.Errorf("closed with %v", env.GetWorkflowError())
			}
			if len(s.aborts) != 1 || s.aborts[0] != s.fetches[0].LeaseID {
				t.Errorf("aborts %v", s.aborts)
			}
			if len(s.finishes) != 1 || s.finishes[0].LeaseID != s.fetches[0].LeaseID {
				t.Errorf("finishes %+v: the lease goes back once, after the fetch", s.finishes)
			}
		})
	}
}

func TestALostTaskThatHadCompletedStillCompletesUnderACancel(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := setup(t, s, dead)
	// The cancel came before the task that is run again: every pass settles. The
	// first two had committed a proxy's fault and a page.
	committed := []crawl.Outcome{{Class: crawl.ProxyFault, Proxy: "p9", Held: true}, {Class: crawl.OK, Status: 200, Held: true}}
	env.OnActivity(workflows.ActivityFetch, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in workflows.FetchInput) (crawl.Outcome, error) {
			if !in.Settle {
				t.Errorf("pass %d asks the site under a cancel", in.Pass)
			}
			return committed[in.Pass-1], nil
		})
	env.RegisterDelayedCallback(env.CancelWorkflow, 0)
	env.ExecuteWorkflow(workflows.URL, input())
	if err := env.GetWorkflowError(); err != nil {
		t.Errorf("closed with %v, want completed: its record is written", err)
	}
}

// TestALostTaskThatWasCutOffClosesCanceled: the lost task had released its lease
// without an outcome and recorded the cancel. Nothing is asked again, so that even
// a POST ends as its record says.
func TestALostTaskThatWasCutOffClosesCanceled(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := &script{}
			env := setup(t, s, page)
			settled := []crawl.Outcome{{Class: crawl.Ended}, {Class: crawl.Canceled}}
			env.OnActivity(workflows.ActivityFetch, mock.Anything, mock.Anything).Return(
				func(_ context.Context, in workflows.FetchInput) (crawl.Outcome, error) {
					if !in.Settle {
						t.Errorf("pass %d asks the site under a cancel", in.Pass)
					}
					return settled[in.Pass-1], nil
				})
			env.RegisterDelayedCallback(env.CancelWorkflow, 0)
			in := input()
			in.Task.Method = method
			env.ExecuteWorkflow(workflows.URL, in)
			if err := env.GetWorkflowError(); !isCanceled(err) {
				t.Errorf("closed with %v, want canceled", err)
			}
		})
	}
}

func isCanceled(err error) bool {
	var c *temporal.CanceledError
	return errors.As(err, &c)
}

func TestACancelInAnOutageWaitsForRedisAndDoesNotSpin(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := setup(t, s, busy)
	var settles int
	env.OnActivity(workflows.ActivityFetch, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in workflows.FetchInput) (crawl.Outcome, error) {
			if !in.Settle {
				return busy(context.Background(), in)
			}
			if settles++; settles <= 5 {
				return crawl.Outcome{}, errors.New("redis is away")
			}
			return crawl.Outcome{Class: crawl.Canceled}, nil
		})
	var timers []time.Duration
	env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { timers = append(timers, d) })
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.ExecuteWorkflow(workflows.URL, input())
	if err := env.GetWorkflowError(); !isCanceled(err) {
		t.Fatalf("closed with %v, want canceled", err)
	}
	if settles != 6 || len(timers) != 6 { // the six hours, then one for each failure
		t.Errorf("%d settles, timers %v", settles, timers)
	}
}

func TestAnUnsafeRequestGoesOnWhereItsRedirectLed(t *testing.T) {
	t.Parallel()
	s := &script{}
	led := is(crawl.Outcome{
		Class: crawl.Deferred, Why: crawl.WaitRedirect, WaitMS: 3000, Held: true, Requests: 1,
		NextURL: "https://example.net/done", NextMethod: "GET", Hops: 1,
	})
	env := setup(t, s, led, busy, page)
	in := input()
	in.Task.Method = "POST"
	env.ExecuteWorkflow(workflows.URL, in)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	for _, f := range s.fetches[1:] {
		if f.NextURL != "https://example.net/done" || f.NextMethod != "GET" || f.Trail != s.fetches[0].LeaseID {
			t.Errorf("pass %d goes on with %q %q, trail %q", f.Pass, f.NextMethod, f.NextURL, f.Trail)
		}
	}
}
