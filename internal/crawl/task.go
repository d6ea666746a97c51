package crawl

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Behaviour is the version of the rules that a task started today runs under.
// It is written into the task at its start, so that a deploy in the middle of a
// six-day wait changes nothing for the URLs that wait.
const Behaviour = 1

// Task is one request of a campaign run, as its workflow sees it. It is the
// workflow's input and so part of its history: it names things and holds none.
// Headers, body and meta of the request stay in the frontier (Extras), proxy
// credentials in the pool.
type Task struct {
	Behaviour int    `json:"v"`
	Campaign  string `json:"campaign"`
	Run       int    `json:"run"`
	// ID is the request's fingerprint: 32 lower-case hex digits, see Fingerprint.
	ID string `json:"id"`
	// URL is what is asked, as the user wrote it; the canonical form only dedupes.
	URL string `json:"url"`
	// Method is the request's method; empty means GET.
	Method string `json:"method,omitempty"`
	// Host is the key of the host's slot, see HostKey.
	Host string `json:"host"`
	// Replay counts how often this request was run again by an operator; 0 is the first.
	Replay int `json:"replay,omitempty"`
	// Epoch is the number of the frontier's claim under which this run works.
	Epoch int64 `json:"epoch"`
	// Depth is the number of links from a seed; a seed has 0.
	Depth  int    `json:"depth,omitempty"`
	Parent string `json:"parent,omitempty"`
	// AcceptedMS is when the frontier took the request, Unix milliseconds.
	AcceptedMS int64 `json:"accepted"`
	// Extras says that headers, body, key or meta of the request are in the frontier.
	Extras bool `json:"extras,omitempty"`
	// Policy says what is retried; zero fields mean their defaults.
	Policy Policy `json:"policy,omitzero"`
	// Timeout is the whole time of one exchange; 0 means DefaultTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`
	// FetchQueue names a task queue of fetch workers; empty means: fetch where
	// the workflow runs.
	FetchQueue string `json:"fetch_queue,omitempty"`
}

// Defaults of one exchange.
const (
	DefaultTimeout      = 30 * time.Second
	DefaultMaxBody      = 16 << 20
	DefaultMaxRedirects = 10
	DefaultUserAgent    = "holdfast"
)

// RunName returns the name of a campaign's run, which is also the id of its
// Campaign workflow and the prefix of its URLs' workflow ids: "docs-1".
func RunName(campaign string, run int) string { return campaign + "-" + strconv.Itoa(run) }

// RunName returns the task's campaign run: "docs-1".
func (t Task) RunName() string { return RunName(t.Campaign, t.Run) }

// WorkflowID returns the id under which this task runs: the campaign run, the
// fingerprint and, for a replay, its number: "docs-1/9f2c…" or "docs-1/9f2c…/2".
func (t Task) WorkflowID() string {
	id := t.RunName() + "/" + t.ID
	if t.Replay > 0 {
		id += "/" + strconv.Itoa(t.Replay)
	}
	return id
}

// EffectiveTimeout returns Timeout or its default.
func (t Task) EffectiveTimeout() time.Duration {
	if t.Timeout <= 0 {
		return DefaultTimeout
	}
	return t.Timeout
}

// EffectiveMethod returns Method or GET.
func (t Task) EffectiveMethod() string {
	if t.Method == "" {
		return "GET"
	}
	return t.Method
}

// SafeToRepeat reports whether the request may be sent again when nobody knows
// whether it arrived: the idempotent methods of RFC 9110 §9.2.2.
func (t Task) SafeToRepeat() bool {
	switch t.EffectiveMethod() {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return t.Policy.UnsafeMethods
}

// LeaseID names the lease of pass n (1, 2, …) of the workflow run runID. It is
// known before anything runs, so that whoever goes on after a crash can release it.
func LeaseID(workflowID, runID string, n int) string {
	return fmt.Sprintf("%s/%s/%d", workflowID, runID, n)
}

// RobotsLease names the lease under which a pass reads robots.txt.
func RobotsLease(lease string) string { return lease + "/robots" }

// HostKey returns the key of the slot that u's requests share: the lower-case
// host name and the port, the scheme's own where none is written:
// "example.org:443". IPv6 addresses keep their brackets.
func HostKey(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if strings.EqualFold(u.Scheme, "https") {
			port = "443"
		}
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), port)
}

// Origin returns u's origin as robots.txt is keyed by (RFC 9309 §2.3): scheme,
// host and port: "https://example.org:443".
func Origin(u *url.URL) string { return strings.ToLower(u.Scheme) + "://" + HostKey(u) }
