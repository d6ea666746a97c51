// Package workflows holds Holdfast's durable code: URL, one request from its
// first attempt to its end, and Campaign, a run over many of them.
//
// Code here is deterministic: no clock, no generator of its own, no IO, no
// global that changes. What touches the world is an activity, called by the
// names in this file.
package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"

	"holdfast/internal/crawl"
)

// Task queues. URL workflows and fetches run on TaskQueue; campaigns, feeders
// and sweepers on ControlQueue, so that full fetch slots never block steering.
const (
	TaskQueue    = "holdfast"
	ControlQueue = "holdfast-control"
)

// Workflow types.
const (
	URLWorkflow      = "URL"
	CampaignWorkflow = "Campaign"
)

// Activity names; package activities implements them, a test holds the two together.
const (
	ActivityFetch    = "Fetch"
	ActivityFinish   = "Finish"
	ActivityAbort    = "Abort"
	ActivityFeed     = "Feed"
	ActivityDrain    = "Drain"
	ActivityFinalize = "Finalize"
)

// QueryProgress answers a campaign's counts from the workflow's memory.
const QueryProgress = "progress"

// Search attributes, registered by `starter setup`.
var (
	CampaignAttr = temporal.NewSearchAttributeKeyKeyword("HoldfastCampaign")
	HostAttr     = temporal.NewSearchAttributeKeyKeyword("HoldfastHost")
	ReasonAttr   = temporal.NewSearchAttributeKeyKeyword("HoldfastReason")
)

// URLInput starts a URL workflow.
type URLInput struct {
	Task crawl.Task `json:"task"`
	// Carry is what an earlier run of the same URL hands on when it continues as new.
	Carry *URLCarry `json:"carry,omitempty"`
}

// URLCarry is a URL's progress over continue-as-new.
type URLCarry struct {
	Pass     int             `json:"pass"`
	Ledgers  crawl.Ledgers   `json:"ledgers"`
	Attempts []crawl.Attempt `json:"attempts"`
	Avoid    []string        `json:"avoid,omitempty"`
	NextURL  string          `json:"next,omitempty"`
	Hops     int             `json:"hops,omitempty"`
	// NextMethod and Trail belong to NextURL, see FetchInput.
	NextMethod string `json:"next_method,omitempty"`
	Trail      string `json:"trail,omitempty"`
}

// URLResult is how a URL workflow completes.
type URLResult struct {
	Status   int    `json:"status"`
	Attempts int    `json:"attempts"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256,omitempty"`
}

// FetchInput is one pass.
type FetchInput struct {
	Task    crawl.Task `json:"task"`
	LeaseID string     `json:"lease"`
	Pass    int        `json:"pass"`
	// Avoid lists the proxies this URL has used.
	Avoid []string `json:"avoid,omitempty"`
	// NextURL and Hops go on with a redirect of an earlier pass.
	NextURL string `json:"next,omitempty"`
	Hops    int    `json:"hops,omitempty"`
	// NextMethod is set where redirects changed the method; there is no body then.
	NextMethod string `json:"next_method,omitempty"`
	// Trail is the lease under which the redirects on the way to NextURL are committed.
	Trail string `json:"trail,omitempty"`
	// Parked says that the frontier counts this URL as waiting.
	Parked bool `json:"parked,omitempty"`
	// Settle asks for what was committed, and asks the site nothing.
	Settle bool   `json:"settle,omitempty"`
	Seed   uint64 `json:"seed"`
}

// FinishInput ends one pass: record, release, ack.
type FinishInput struct {
	Task     crawl.Task      `json:"task"`
	LeaseID  string          `json:"lease"`
	RunID    string          `json:"run_id"`
	Outcome  crawl.Outcome   `json:"outcome"`
	Decision crawl.Decision  `json:"decision"`
	Ledgers  crawl.Ledgers   `json:"ledgers"`
	Attempts []crawl.Attempt `json:"attempts,omitempty"`
	// Trail is that of FetchInput, for a URL that ends without another answer.
	Trail string `json:"trail,omitempty"`
	// EndedMS is the workflow's time, Unix milliseconds: the record's `ended`.
	EndedMS int64 `json:"ended"`
}

// AbortInput asks the holder of a lease to stop.
type AbortInput struct {
	LeaseID string `json:"lease"`
}

// CampaignInput starts a Campaign workflow, on ControlQueue and under the id
// RunName; everything else is in the frontier.
type CampaignInput struct {
	Campaign string `json:"campaign"`
	Run      int    `json:"run"`
	// FeedFor is how long one Feed activity works. Default 60 s.
	FeedFor time.Duration `json:"feed_for,omitempty"`
}

// RunName returns the run's name, which is the workflow's id.
func (c CampaignInput) RunName() string { return crawl.RunName(c.Campaign, c.Run) }

// FeedInput is one stretch of feeding.
type FeedInput struct {
	Campaign string        `json:"campaign"`
	Run      int           `json:"run"`
	For      time.Duration `json:"for"`
	// Feeder orders feeders: one that finds a higher number stops.
	Feeder int64 `json:"feeder"`
}

// RunInput names a campaign's run, for Drain and Finalize.
type RunInput struct {
	Campaign string `json:"campaign"`
	Run      int    `json:"run"`
}

// FeedResult is where the run stood at the end of the stretch.
type FeedResult struct {
	Progress Progress `json:"progress"`
	// Finished says that every accepted URL has ended and no more will come.
	Finished bool `json:"finished"`
	// Canceling says that the run's cancel flag is set.
	Canceling bool `json:"canceling"`
	Started   int  `json:"started"`
}

// Progress is a campaign's counts, as its query and result show them.
type Progress struct {
	State     string `json:"state"`
	Accepted  int64  `json:"accepted"`
	Queued    int64  `json:"queued"`
	Running   int64  `json:"running"`
	Waiting   int64  `json:"waiting"`
	Completed int64  `json:"completed"`
	Failed    int64  `json:"failed"`
	Skipped   int64  `json:"skipped"`
	Canceled  int64  `json:"canceled"`
	Bytes     int64  `json:"bytes"`
}
