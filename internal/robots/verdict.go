package robots

import (
	"time"

	"holdfast/internal/crawl"
)

// How long an answer holds.
const (
	// TTL is how long a robots.txt that could be read, or is not there, counts
	// (RFC 9309 §2.4: at most 24 h).
	TTL = 24 * time.Hour
	// UnreachableTTL is after how long an origin that answered 5xx is asked again,
	// SilentTTL one that gave no answer: that may have been the proxy.
	UnreachableTTL = 5 * time.Minute
	SilentTTL      = 30 * time.Second
	// MaxRedirects is how many redirects to a robots.txt are followed (§2.3.1.2).
	MaxRedirects = 5
)

// Access is what is known of an origin.
type Access string

// The kinds of access.
const (
	// ByRules: the robots.txt was read, its rules decide.
	ByRules Access = "rules"
	// Open: there is none (4xx, or redirects without end): everything is allowed.
	Open Access = "open"
	// Closed: it cannot be reached (5xx, timeout): nothing is allowed for now.
	Closed Access = "closed"
)

// Entry is what one origin's robots.txt means for one crawler.
type Entry struct {
	Access Access
	// Status is the answer's, 0 if none came.
	Status int
	// Rules is nil but for ByRules.
	Rules *Ruleset
	// Left is how long the entry still holds. Set by Store.Get.
	Left time.Duration
}

// Allowed reports whether a path with its query may be asked for. Under Closed
// nothing may, for now: the URL waits, it is not denied.
func (e Entry) Allowed(pathAndQuery string) bool {
	switch e.Access {
	case Open:
		return true
	case ByRules:
		return e.Rules == nil || e.Rules.Allowed(pathAndQuery)
	}
	return false
}

// Size returns about how much memory e takes, in bytes.
func (e Entry) Size() int {
	n := 128
	if e.Rules != nil {
		for _, r := range e.Rules.rules {
			n += len(r.pattern) + 24
		}
	}
	return n
}

// CrawlDelay returns the crawl-delay, false if there is none.
func (e Entry) CrawlDelay() (time.Duration, bool) {
	if e.Rules == nil {
		return 0, false
	}
	return e.Rules.CrawlDelay()
}

// TTL returns how long e is to be kept.
func (e Entry) TTL() time.Duration {
	switch {
	case e.Access != Closed:
		return TTL
	case e.Status == 0:
		return SilentTTL
	}
	return UnreachableTTL
}

// Judge returns what the exchange that asked for a robots.txt means (RFC 9309
// §2.3.1); body is what came of it. It reports false for an outcome that says
// nothing about its robots.txt, and nothing is to be kept then: the proxy's fault,
// a deferral, a cancel, or a host that does not exist or may not be asked, which is
// the page's own end too.
//
// 4xx allows everything, 5xx and no answer nothing. 408, 425 and 429 count as 5xx:
// they ask for patience, not for a crawl. Redirects that lead nowhere or where we
// must not go count as 4xx (§2.3.1.2). Of a file that is too large the part that
// came counts.
func Judge(o crawl.Outcome, body []byte, userAgent string) (Entry, bool) {
	e := Entry{Access: Closed, Status: o.Status}
	switch o.Class {
	case crawl.OK:
		e.Access, e.Rules = ByRules, Parse(body).For(userAgent)
	case crawl.TooLarge:
		if len(body) > 0 {
			e.Access, e.Rules = ByRules, Parse(body).For(userAgent)
		}
	case crawl.TargetPermanent, crawl.Blocked:
		if o.Status >= 300 && o.Status <= 499 {
			e.Access = Open
		}
	case crawl.Permanent:
		if o.Status == 0 {
			return Entry{}, false
		}
		e.Access = Open
	case crawl.TargetTransient, crawl.Ambiguous:
	default:
		return Entry{}, false
	}
	return e, true
}

// Buffer keeps the part of a robots.txt that is read: a fetch.Body. The zero
// value is ready.
type Buffer struct{ data []byte }

// Write keeps p up to MaxBytes and takes the rest without keeping it.
func (b *Buffer) Write(p []byte) (int, error) {
	// One byte more than is read shows Parse that the last line is cut.
	if room := MaxBytes + 4 - len(b.data); room > 0 {
		b.data = append(b.data, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// Commit does nothing: a robots.txt is no result.
func (b *Buffer) Commit() (crawl.BodyRef, string, error) { return crawl.BodyRef{}, "", nil }

// Discard keeps what came: Judge decides by the outcome what it is worth.
func (b *Buffer) Discard() {}

// Bytes returns what was kept.
func (b *Buffer) Bytes() []byte { return b.data }
