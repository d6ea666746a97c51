package crawl

import (
	"encoding/json"
	"time"
)

// RecordSchema is the version of Record.
const RecordSchema = 1

// Record is one line of the results: what became of one request. There is
// exactly one per (run, id, replay) over the pages and failures streams together.
type Record struct {
	Schema   int             `json:"schema"`
	Campaign string          `json:"campaign"`
	Run      int             `json:"run"`
	Replay   int             `json:"replay"`
	ID       string          `json:"id"`
	URL      string          `json:"url"`
	Method   string          `json:"method"`
	FinalURL string          `json:"final_url,omitempty"`
	Parent   string          `json:"parent,omitempty"`
	Depth    int             `json:"depth"`
	Meta     json.RawMessage `json:"meta,omitempty"`
	State    State           `json:"state"`
	// Reason is null for a completed URL.
	Reason *Reason `json:"reason"`
	Rule   string  `json:"rule,omitempty"`
	Status int     `json:"status,omitempty"`
	// Unchanged is true for 304.
	Unchanged   bool              `json:"unchanged"`
	Attempts    []Attempt         `json:"attempts"`
	Redirects   []Redirect        `json:"redirects,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Charset     string            `json:"charset,omitempty"`
	Bytes       int64             `json:"bytes"`
	WireBytes   int64             `json:"wire_bytes"`
	SHA256      string            `json:"sha256,omitempty"`
	Body        *BodyRef          `json:"body,omitempty"`
	Data        json.RawMessage   `json:"data,omitempty"`
	// Accepted and Ended are RFC 3339 with milliseconds, UTC.
	Accepted   string `json:"accepted"`
	Ended      string `json:"ended"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// Redirect is one hop: the answer's status and where it pointed.
type Redirect struct {
	Status int    `json:"status"`
	To     string `json:"to"`
}

// BodyRef says where a body lies, relative to the run's folder or bucket prefix.
type BodyRef struct {
	Store string `json:"store"`
	Path  string `json:"path"`
}

// Page is what an exchange learnt beyond its Outcome: it goes into the record
// and into the lease's tombstone, never into history.
type Page struct {
	FinalURL    string            `json:"final_url,omitempty"`
	Redirects   []Redirect        `json:"redirects,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Charset     string            `json:"charset,omitempty"`
	Body        *BodyRef          `json:"body,omitempty"`
}

// Committed is what a commit stores under a lease id: all that a Fetch that is
// run again, or a Finish on another worker, needs to go on without asking the site.
type Committed struct {
	Outcome Outcome `json:"o"`
	Page    *Page   `json:"p,omitempty"`
}

// RecordKey identifies a record within a run.
type RecordKey struct {
	ID     string
	Replay int
}

// Key returns the record's identity within its run.
func (r Record) Key() RecordKey { return RecordKey{ID: r.ID, Replay: r.Replay} }

// Stamp formats Unix milliseconds as records do: RFC 3339, milliseconds, UTC.
func Stamp(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
