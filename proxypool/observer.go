package proxypool

import (
	"time"

	"holdfast/internal/crawl"
)

// Observer is told what a pool does, for metrics. Its methods are called by the
// goroutine that called the pool, after Redis has answered: they must be quick
// and safe for concurrent use.
type Observer interface {
	// Acquired is told the answer of each Acquire and how long it took; a is the
	// zero value where err is not nil. Grants are leases, waits have their reason.
	Acquired(a Acquired, took time.Duration, err error)
	// Released is told each verdict with which a lease ended; not the repetitions.
	Released(v crawl.Verdict)
	// Reaped is told how many leases ended at their deadline.
	Reaped(n int)
	// Repaired is told how many counts and entries Reconcile put right.
	Repaired(n int)
	// Counted is told each answer of Stats: proxies by state, their scores, leases.
	Counted(s Stats)
}

// unobserved is the observer of a pool that has none.
type unobserved struct{}

var _ Observer = unobserved{}

func (unobserved) Acquired(Acquired, time.Duration, error) {}
func (unobserved) Released(crawl.Verdict)                  {}
func (unobserved) Reaped(int)                              {}
func (unobserved) Repaired(int)                            {}
func (unobserved) Counted(Stats)                           {}
