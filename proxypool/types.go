package proxypool

import (
	"time"

	"holdfast/internal/crawl"
)

// HostLimits is what a caller may ask of a host.
type HostLimits struct {
	// Interval is the time between two grants. 0: none.
	Interval time.Duration
	// Concurrency is the number of leases open at once. 0: no limit.
	Concurrency int
}

// Selector says which proxies are eligible.
type Selector struct {
	// Direct leases the host's slot alone: the grant names no proxy.
	Direct  bool
	Tags    []string
	Region  string
	Schemes []string
	// Avoid lists proxy ids not to take while another eligible one exists
	// (one in use, resting or cooling counts as existing only if it frees within Patience).
	Avoid []string
	// MaxTier is the dearest tier that may be leased, at most MaxTier. 0: the
	// cheapest alone. A tier is used where the cheaper ones have no proxy that is
	// free, or expected within Patience, other than those to avoid.
	MaxTier int
	// Session pins all leases of the same name to one proxy, whatever Avoid says,
	// until that one is quarantined, drained, removed or expired, cools for more
	// than 2 min, is blocked by the host, or was not leased so for SessionTTL.
	// The name holds no '|'. Empty: none.
	Session string
}

// MaxTier is the dearest tier there can be.
const MaxTier = 9

// AcquireRequest asks for a lease.
type AcquireRequest struct {
	// LeaseID is chosen by the caller before anything runs. Required.
	LeaseID string
	// Holder is drawn once by each execution; the same holder gets the same
	// grant again, another one supersedes it with a higher fence. Required.
	Holder string
	// Claimant owns the reservation of a host's turn over several passes (the
	// workflow id). Required.
	Claimant string
	// Host is the slot's key, see crawl.HostKey. Required.
	Host     string
	Limits   HostLimits
	Selector Selector
	// Seed drives the weighted choice; the script has no generator of its own.
	Seed uint64
	// Settle grants nothing: it answers the tombstone of an ended lease, or ends
	// the lease without an outcome. For a run that was canceled.
	Settle bool
}

// Acquired is the answer: exactly one of Grant, Wait and Ended is set.
type Acquired struct {
	Grant *Grant
	Wait  *Wait
	Ended *Ended
}

// Grant is a lease that is held.
type Grant struct {
	LeaseID string
	Fence   int64
	// Proxy is nil for a direct lease.
	Proxy *crawl.Proxy
	Host  string
	// Superseded says that another holder had this lease before: its request may
	// be under way still.
	Superseded bool
	// Deadline is the local monotonic time until which the holder may trust the
	// lease: TTL after the acquire was SENT, minus a margin.
	Deadline time.Time
}

// Wait says when to come back and why. A host's turn is reserved: coming back at
// that time takes it, coming more than 5 s late loses it.
type Wait struct {
	After time.Duration
	Why   crawl.WaitReason
	// Held says that the lease is open all the same and wants its release: it was
	// taken over from another holder, or a hop found its host busy.
	Held bool
}

// Ended is the tombstone of a lease that was already released or reaped.
type Ended struct {
	// Outcome is what was committed, nil if nothing was.
	Outcome []byte
	// Fresh says that this very call (Settle) ended it: no execution had it, or one
	// that committed nothing.
	Fresh bool
	// Open says that the lease was open until then: somebody may have used it.
	Open bool
}

// Renewal is the state of a lease that was renewed.
type Renewal struct {
	Deadline time.Time
	// Abort says that somebody asked this lease's holder to stop.
	Abort bool
	// NotBefore is how long the host is closed from now; 0: open.
	NotBefore time.Duration
}

// ReleaseRequest ends a lease.
type ReleaseRequest struct {
	LeaseID string
	Verdict crawl.Verdict
}

// Released is what a release did.
type Released struct {
	// First is true for the release that freed the lease and took the sample.
	First bool
	// Outcome is what was committed under the lease, nil if nothing was.
	Outcome []byte
}

// DefaultTTL is a lease's lifetime without renewal.
const DefaultTTL = 45 * time.Second
