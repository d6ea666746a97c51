package frontier

import (
	"errors"
	"time"

	"holdfast/internal/crawl"
)

// RunState is where a campaign's run stands.
type RunState string

// The states of a run. Loading: its input is not complete yet; URLs run already.
const (
	RunLoading   RunState = "loading"
	RunRunning   RunState = "running"
	RunPaused    RunState = "paused"
	RunCanceling RunState = "canceling"
	RunFinished  RunState = "finished"
	RunCanceled  RunState = "canceled"
)

// Open reports whether the run may still ask sites.
func (s RunState) Open() bool { return s == RunLoading || s == RunRunning || s == RunPaused }

// Errors of the registry and of a run.
var (
	// ErrNoRun: no such campaign or run.
	ErrNoRun = errors.New("frontier: no such campaign run")
	// ErrRunOpen: the campaign's latest run has not ended.
	ErrRunOpen = errors.New("frontier: a run of this campaign is open")
	// ErrRunEnded: the campaign's latest run has ended and no new run was asked for.
	ErrRunEnded = errors.New("frontier: the campaign's latest run has ended")
	// ErrInputDiffers: a run that is still loading was started from other input.
	ErrInputDiffers = errors.New("frontier: the run was started from other input")
	// ErrFenced: another feeder took over this run.
	ErrFenced = errors.New("frontier: another feeder took over")
	// ErrSealed: the run's input is complete; more goes in by Add.
	ErrSealed = errors.New("frontier: the run's input is complete")
	// ErrNoURL: the run never accepted this id, or its frontier was lost.
	ErrNoURL = errors.New("frontier: no such URL in this run")
	// ErrName: a campaign's name is not made of a-z, 0-9, ".", "_" and "-".
	ErrName = errors.New("frontier: a campaign's name has up to 64 of a-z 0-9 . _ - and starts with a letter or digit")
)

// Source identifies a run's input, so that the same command goes on after a
// killed starter and another input is refused.
type Source struct {
	// Digest is the SHA-256 of the checked input and of the spec, in hex.
	Digest string
	// Label names the input for people: "urls.txt".
	Label string
	// Total is the number of requests in the input.
	Total int
}

// RunInfo is what the registry knows of a run.
type RunInfo struct {
	Campaign string
	Run      int
	State    RunState
	Spec     crawl.Spec
	Source   Source
	// Sealed says that the input is complete.
	Sealed bool
	// Batches is the number of input batches already loaded.
	Batches int
	Created time.Time
	// Ended is zero while the run is open.
	Ended  time.Time
	Counts Counts
}

// Name returns the run's name: "docs-1".
func (r RunInfo) Name() string { return crawl.RunName(r.Campaign, r.Run) }

// Counts are a run's URLs by state. Their sum is Accepted, at any moment.
type Counts struct {
	Accepted  int64 `json:"accepted"`
	Queued    int64 `json:"queued"`
	Running   int64 `json:"running"`
	Waiting   int64 `json:"waiting"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Skipped   int64 `json:"skipped"`
	Canceled  int64 `json:"canceled"`
	// Bytes is the sum of the decoded bodies, WireBytes of what was read.
	Bytes     int64 `json:"bytes"`
	WireBytes int64 `json:"wire_bytes"`
	// Retries counts second and further attempts, ProxyFaults the proxies'
	// faults, Waits the passes that were deferred.
	Retries     int64 `json:"retries"`
	ProxyFaults int64 `json:"proxy_faults"`
	Waits       int64 `json:"waits"`
}

// Open returns the URLs that have been claimed and have not ended.
func (c Counts) Open() int64 { return c.Running + c.Waiting }

// Done returns the URLs that have ended, however.
func (c Counts) Done() int64 { return c.Completed + c.Failed + c.Skipped + c.Canceled }

// Entry is one request on its way into the frontier, checked and fingerprinted.
type Entry struct {
	ID      string
	Host    string
	Depth   int
	Parent  string
	Request crawl.Request
}

// CreateOptions steer CreateRun.
type CreateOptions struct {
	// NewRun starts another run of a campaign whose latest has ended.
	NewRun bool
}

// Added says what became of a batch.
type Added struct {
	Added int `json:"added"`
	Seen  int `json:"seen"`
}

// HostQueue is a host with queued URLs, as Peek shows it.
type HostQueue struct {
	Host   string
	Queued int64
	// Running counts this run's claimed URLs of the host that do not wait.
	Running int64
}

// HostQuota allows a claim to take up to N URLs of a host.
type HostQuota struct {
	Host string
	N    int
}

// Claim is a URL handed to a feeder.
type Claim struct {
	ID         string
	URL        string
	Method     string
	Host       string
	Depth      int
	Parent     string
	Replay     int
	Epoch      int64
	AcceptedMS int64
	Extras     bool
}

// Started marks a claim whose workflow runs.
type Started struct {
	ID    string
	Epoch int64
	RunID string
}

// Ack ends a URL. The first for an (id, replay) wins.
type Ack struct {
	ID     string
	Replay int
	State  crawl.State
	Reason crawl.Reason
	// File is the results file that holds the record: the confirmation that the
	// record is written. Empty: no record (a skipped URL that nobody wrote yet).
	File        string
	Proxy       string
	Bytes       int64
	WireBytes   int64
	Retries     int
	ProxyFaults int
}

// Acked is what an ack did.
type Acked struct {
	// First is true for the ack that ended the URL.
	First bool
	// File is the confirmed results file: the caller's own, or that of whoever came first.
	File string
}

// Parked moves a running URL to waiting, or (Until zero) back to running.
type Parked struct {
	ID     string
	Replay int
	Why    crawl.WaitReason
	// Wait is the time from now; 0 takes the URL back to running.
	Wait time.Duration
	// Token names the pass that waits, its lease id for instance: run again under
	// the same token, a park is counted as one wait. Empty: each call is a wait.
	Token string
}

// OpenClaim is a claim that has not ended, for the sweeper and for cancel.
type OpenClaim struct {
	ID     string
	Replay int
	Epoch  int64
	// RunID is empty for a claim whose workflow was never marked as started.
	RunID string
	// Age is the time since the claim.
	Age   time.Duration
	State crawl.State
	// The request, for whoever has to write its record.
	URL        string
	Method     string
	Host       string
	Depth      int
	Parent     string
	AcceptedMS int64
	Extras     bool
}

// URLInfo is one URL's state.
type URLInfo struct {
	ID     string       `json:"id"`
	URL    string       `json:"url"`
	Host   string       `json:"host"`
	State  crawl.State  `json:"state"`
	Reason crawl.Reason `json:"reason,omitempty"`
	Replay int          `json:"replay,omitempty"`
	// Method is empty for GET; AcceptedMS is Unix milliseconds.
	Method     string `json:"method,omitempty"`
	AcceptedMS int64  `json:"accepted_ms,omitempty"`
	File       string `json:"file,omitempty"`
	Proxy      string `json:"proxy,omitempty"`
	// Why and Until are set while the URL waits.
	Why   crawl.WaitReason `json:"why,omitempty"`
	Until time.Time        `json:"until,omitzero"`
	// RunID is the workflow run that works on the URL, once known.
	RunID string `json:"run_id,omitempty"`
}

// WaitGroup is a group of waiting URLs: "412 URLs wait for example.org until 14:05".
type WaitGroup struct {
	Host  string           `json:"host"`
	Why   crawl.WaitReason `json:"why"`
	URLs  int64            `json:"urls"`
	Until time.Time        `json:"until"`
}
