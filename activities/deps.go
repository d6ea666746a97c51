package activities

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
	"holdfast/internal/frontier"
	"holdfast/internal/results"
	"holdfast/proxypool"
)

// Leaser is what the activities need of the proxy pool; proxypool.Pool is one.
//
// Errors: proxypool.ErrStale when the lease is not (or no longer) the caller's;
// every other error means that Redis did not answer as it should.
type Leaser interface {
	Acquire(ctx context.Context, r proxypool.AcquireRequest) (proxypool.Acquired, error)
	// Renew extends the lease by one TTL from now, if held under this fence.
	Renew(ctx context.Context, leaseID string, fence int64) (proxypool.Renewal, error)
	// Hop moves the lease to another host, for a redirect: the new host's turn
	// is taken, the old host's slot freed. A Wait leaves the lease where it was.
	Hop(ctx context.Context, leaseID string, fence int64, claimant, host string, limits proxypool.HostLimits) (proxypool.Acquired, error)
	// Commit stores an ended exchange's outcome under the lease. Needs the
	// current fence; idempotent.
	Commit(ctx context.Context, leaseID string, fence int64, outcome []byte) error
	// Release frees the lease and takes one health sample, the first time; an
	// unknown id becomes a tombstone. Never ErrStale.
	Release(ctx context.Context, r proxypool.ReleaseRequest) (proxypool.Released, error)
	// Abort asks the holder of a lease to stop: it sees it at its next Renew.
	Abort(ctx context.Context, leaseID string) error
	// Committed returns what was committed under a lease, nil for nothing.
	Committed(ctx context.Context, leaseID string) ([]byte, error)
	// CloseHost writes a not-before of after from now to the host's slot.
	CloseHost(ctx context.Context, host string, after time.Duration) error
	// Turns returns how long from now each host's next free turn is (0: now),
	// not-before included.
	Turns(ctx context.Context, hosts []string) ([]time.Duration, error)

	// Capacity returns how many leases the eligible proxies carry at once: the sum
	// of their concurrencies, those in quarantine or cooling left out.
	Capacity(ctx context.Context, s proxypool.Selector) (int, error)

	// ReleaseOn queues a release on a pipeline; the function returned gives its
	// result after Exec, running the script again by itself after NOSCRIPT.
	ReleaseOn(ctx context.Context, p redis.Pipeliner, r proxypool.ReleaseRequest) func(context.Context) (proxypool.Released, error)
}

// Frontier is what the activities need of a campaign's URLs; frontier.Store is one.
// run is a run's name, "docs-1".
type Frontier interface {
	Run(ctx context.Context, run string) (frontier.RunInfo, error)
	// States returns the runs' states, in the order asked; "" for a run that is not there.
	States(ctx context.Context, runs []string) ([]frontier.RunState, error)
	Counts(ctx context.Context, run string) (frontier.Counts, error)
	URL(ctx context.Context, run, id string) (frontier.URLInfo, error)
	// Cancel sets the run's cancel flag; idempotent.
	Cancel(ctx context.Context, run string) error
	Extras(ctx context.Context, run, id string) (crawl.Request, error)

	// TakeOver makes feeder the run's only feeder; a lower number gets ErrFenced from then on.
	TakeOver(ctx context.Context, run string, feeder int64) error
	// Peek returns up to n hosts with queued URLs, taking turns between calls.
	Peek(ctx context.Context, run string, n int) ([]frontier.HostQueue, error)
	Claim(ctx context.Context, run string, feeder int64, quotas []frontier.HostQuota) ([]frontier.Claim, error)
	MarkStarted(ctx context.Context, run string, started []frontier.Started) error
	// Requeue gives a claim back; a no-op if the epoch is no longer the claim's.
	Requeue(ctx context.Context, run, id string, epoch int64) error
	Park(ctx context.Context, run string, p frontier.Parked) error
	Ack(ctx context.Context, run string, a frontier.Ack) (frontier.Acked, error)
	// AckOn is Ack on a pipeline, as ReleaseOn.
	AckOn(ctx context.Context, p redis.Pipeliner, run string, a frontier.Ack) func(context.Context) (frontier.Acked, error)

	// OpenClaims returns up to n open claims from the run's queue of claims,
	// starting at the position after; the next position is "" at the end.
	OpenClaims(ctx context.Context, run, after string, n int) (claims []frontier.OpenClaim, next string, err error)
	// SkipQueued ends up to n queued URLs of a run that is being canceled as
	// skipped. It returns each again until an Ack confirms its record.
	SkipQueued(ctx context.Context, run string, reason crawl.Reason, n int) ([]frontier.Claim, error)
	// RecordFiles returns the confirmed results file of each key, "" for none.
	RecordFiles(ctx context.Context, run string, keys []crawl.RecordKey) ([]string, error)
	// FinishIfIdle ends a sealed run in which nothing is queued or open; it
	// reports whether the run has ended.
	FinishIfIdle(ctx context.Context, run string) (bool, error)
}

// Sink is what the activities need of the results; results.Local is one.
// run is a run's name; campaign and number its parts.
type Sink interface {
	// NewBody opens the store for one decoded body of the run.
	NewBody(ctx context.Context, campaign string, run int) (results.Body, error)
	// Append writes a record to its stream (pages for completed, failures for
	// the others) and returns its file's name once the line is durable.
	Append(ctx context.Context, r crawl.Record) (file string, err error)
	// Drop removes this worker's own line of a record that another file holds.
	Drop(ctx context.Context, r crawl.Record, file string) error
	// Reconcile cleans the run's files that no live worker holds: a torn tail is
	// cut, a line whose record is confirmed in another file is dropped.
	Reconcile(ctx context.Context, campaign string, run int, confirmed results.Confirmed) error
	// OpenRun writes run.json and campaign.yaml of the run, if they are not there.
	OpenRun(ctx context.Context, info results.RunMeta) error
}

// Exchanger makes one exchange; fetch.Client is one.
type Exchanger interface {
	Do(ctx context.Context, r fetch.Request) fetch.Result
}
