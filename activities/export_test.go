package activities

import (
	"context"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// SettleNow is SettleRecords for lines of any age.
func SettleNow(ctx context.Context, a *Activities) error {
	a.pages.mu.Lock()
	for k, o := range a.pages.open {
		o.since = o.since.Add(-2 * settleAfter)
		a.pages.open[k] = o
	}
	a.pages.mu.Unlock()
	return a.SettleRecords(ctx)
}

// HostQuota is hostQuota.
func HostQuota(p crawl.Politeness, turn time.Duration, h frontier.HostQueue) int {
	return hostQuota(p, turn, h)
}

// KnownRuns returns the number of runs that are remembered.
func KnownRuns(a *Activities) int {
	a.runs.mu.Lock()
	defer a.runs.mu.Unlock()
	return len(a.runs.runs)
}
