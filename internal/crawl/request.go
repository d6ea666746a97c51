package crawl

import "encoding/json"

// Request is what a user asks for (one line of --urls, one seed).
type Request struct {
	// Method defaults to GET.
	Method string `json:"method,omitempty"`
	URL    string `json:"url"`
	// Headers are added to the campaign's own; secrets come by reference only.
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	// Key replaces the fingerprint's input, for requests that differ by more than URL and body.
	Key string `json:"key,omitempty"`
	// Meta is the user's own, at most 1 KiB of JSON, copied to the record.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// MaxMeta is the largest Meta, in bytes.
const MaxMeta = 1 << 10

// HasExtras reports whether the request has more than a method and a URL.
func (r Request) HasExtras() bool {
	return len(r.Headers) > 0 || r.Body != "" || r.Key != "" || len(r.Meta) > 0
}

// State is where a URL of a campaign stands.
type State string

// The states of a URL, as every surface names them.
const (
	Queued        State = "queued"
	Running       State = "running"
	Waiting       State = "waiting"
	Completed     State = "completed"
	Failed        State = "failed"
	Skipped       State = "skipped"
	StateCanceled State = "canceled"
)

// Terminal reports whether s is one of the four ends.
func (s State) Terminal() bool {
	return s == Completed || s == Failed || s == Skipped || s == StateCanceled
}
