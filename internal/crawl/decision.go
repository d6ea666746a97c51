package crawl

import "time"

// Action is what a URL does next.
type Action string

// The actions of a Decision.
const (
	Done    Action = "done"   // completed
	Fail    Action = "fail"   // failed with Reason, or skipped (Skip)
	Retry   Action = "retry"  // wait Delay, then the next pass
	Stopped Action = "cancel" // the run closes Canceled
)

// Decision is what the rules make of an outcome.
type Decision struct {
	Action Action `json:"action"`
	// Reason is set for Fail.
	Reason Reason `json:"reason,omitempty"`
	// Skip makes a Fail a skip: the URL was not to be asked (robots).
	Skip bool `json:"skip,omitempty"`
	// Delay and Why belong to Retry; a Delay of 0 goes on at once.
	Delay time.Duration `json:"delay,omitempty"`
	Why   WaitReason    `json:"why,omitempty"`
	// Summary is the timer's, in one line for people: "Retry-After 120 s, 429 via p17".
	Summary string `json:"summary,omitempty"`
}

// State returns the state in which a terminal decision leaves the URL, and
// false for one that goes on.
func (d Decision) State() (State, bool) {
	switch d.Action {
	case Done:
		return Completed, true
	case Fail:
		if d.Skip {
			return Skipped, true
		}
		return Failed, true
	case Stopped:
		return StateCanceled, true
	}
	return "", false
}

// Ledgers are what a URL has spent. Each has a cap of its own in Policy, so that
// a dead proxy never spends the URL's attempts and a wait spends neither.
type Ledgers struct {
	// Attempts counts the target's answers and ambiguous faults.
	Attempts int `json:"attempts,omitempty"`
	// ProxyFaults counts the proxies' faults.
	ProxyFaults int `json:"proxy_faults,omitempty"`
	// Throttled counts 429 and 503 with a Retry-After.
	Throttled int `json:"throttled,omitempty"`
	// Blocks counts Blocked outcomes.
	Blocks int `json:"blocks,omitempty"`
	// Denied counts proxies that refused their credentials.
	Denied int `json:"denied,omitempty"`
	// Waited is the sum of all waits, ProxyWaited of those for a proxy since the
	// last one was had.
	Waited      time.Duration `json:"waited,omitempty"`
	ProxyWaited time.Duration `json:"proxy_waited,omitempty"`
	// RobotsWaited is the sum of the waits for robots.txt since the last exchange.
	RobotsWaited time.Duration `json:"robots_waited,omitempty"`
	// Deferrals counts the passes that were deferred, Infra the passes in a row
	// that Redis or the store failed, Pauses those in a row that found the
	// campaign paused.
	Deferrals int `json:"deferrals,omitempty"`
	Infra     int `json:"infra,omitempty"`
	Pauses    int `json:"pauses,omitempty"`
	// Backoff is the last own backoff, which decorrelated jitter grows from.
	Backoff time.Duration `json:"backoff,omitempty"`
}
