package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"holdfast/internal/frontier"
)

// Causes for which a flight ends before its exchange does.
var (
	errAborted  = errors.New("activities: the fetch was aborted")
	errStale    = errors.New("activities: the lease was lost")
	errStopping = errors.New("activities: the worker stops")
	errLate     = errors.New("activities: the pass is out of time")
)

// flights are the fetches under way in this process, by lease id.
type flights struct {
	mu       sync.Mutex
	byLease  map[string]*flight
	draining bool // no new lease is taken
}

type flight struct {
	run    string
	cancel context.CancelCauseFunc
}

func newFlights() *flights { return &flights{byLease: map[string]*flight{}} }

// board registers a fetch and returns its context and what to call at its end.
// It reports false when the worker drains.
func (f *flights) board(ctx context.Context, lease, run string) (context.Context, func(), bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.draining {
		cancel(errStopping)
		return ctx, func() {}, false
	}
	fl := &flight{run: run, cancel: cancel}
	if before := f.byLease[lease]; before != nil {
		// The same pass again, in the same process: the pool takes the lease from
		// the one before, which is as good as over.
		before.cancel(errStale)
	}
	f.byLease[lease] = fl
	return ctx, func() {
		cancel(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.byLease[lease] == fl {
			delete(f.byLease, lease)
		}
	}, true
}

// abort ends the fetch under lease, if it is here.
func (f *flights) abort(lease string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl, ok := f.byLease[lease]; ok {
		fl.cancel(errAborted)
	}
}

// abortRuns ends every fetch of the runs for which gone says so.
func (f *flights) abortRuns(gone map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fl := range f.byLease {
		if gone[fl.run] {
			fl.cancel(errAborted)
		}
	}
}

// runsAloft returns the runs that have a fetch under way.
func (f *flights) runsAloft() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[string]bool{}
	var runs []string
	for _, fl := range f.byLease {
		if !seen[fl.run] {
			seen[fl.run] = true
			runs = append(runs, fl.run)
		}
	}
	return runs
}

func (f *flights) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = true
}

func (f *flights) handOn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = true
	for _, fl := range f.byLease {
		fl.cancel(errStopping)
	}
}

func (f *flights) isDraining() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.draining
}

func (f *flights) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byLease)
}

// DrainFetches stops taking leases; fetches under way go on.
func (a *Activities) DrainFetches() { a.flights.drain() }

// HandOn aborts every fetch under way; another worker goes on with its URL.
func (a *Activities) HandOn() { a.flights.handOn() }

// AbortCanceled ends the fetches under way of runs that were canceled. Called
// once a second, one Redis call whatever their number.
func (a *Activities) AbortCanceled(ctx context.Context) error {
	runs := a.flights.runsAloft()
	if len(runs) == 0 {
		return nil
	}
	states, err := a.Frontier.States(ctx, runs)
	if err != nil {
		return fmt.Errorf("read states of runs: %w", err)
	}
	gone := map[string]bool{}
	for i, run := range runs {
		if states[i] == frontier.RunCanceling || states[i] == frontier.RunCanceled {
			gone[run] = true
		}
	}
	if len(gone) > 0 {
		a.flights.abortRuns(gone)
	}
	return nil
}
