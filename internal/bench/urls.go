package bench

import (
	"fmt"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// path is the i-th URL's path: a page of 20 kB, after the site's latency, or for
// the share of them that faults say one that fails once.
func (o Options) path(round string, i int) string {
	if o.Faults > 0 && int(float64(i+1)*o.Faults) > int(float64(i)*o.Faults) {
		kind := [...]string{"flaky", "truncated", "reset"}[int(float64(i)*o.Faults)%3]
		return fmt.Sprintf("/%s/%s-%d?times=1", kind, round, i)
	}
	if o.Latency > 0 {
		return fmt.Sprintf("/slow/%s-%d?ms=%d", round, i, o.Latency.Milliseconds())
	}
	return fmt.Sprintf("/ok/%s-%d", round, i)
}

// entries are a round's URLs as the frontier takes them.
func (b *Bench) entries(round string, n int) ([]frontier.Entry, error) {
	entries := make([]frontier.Entry, n)
	for i := range entries {
		e, err := frontier.NewEntry(crawl.Request{URL: b.lab.site + b.opts.path(round, i)}, 0, "")
		if err != nil {
			return nil, fmt.Errorf("make URL: %w", err)
		}
		entries[i] = e
	}
	return entries, nil
}

// tasks are a round's URLs as a feeder hands them to workflows, for the shapes
// that have no feeder: the same input, to the byte or nearly.
func (b *Bench) tasks(campaign, round string, n int) ([]crawl.Task, error) {
	entries, err := b.entries(round, n)
	if err != nil {
		return nil, err
	}
	spec, now := b.spec(campaign), time.Now().UnixMilli()
	tasks := make([]crawl.Task, n)
	for i, e := range entries {
		tasks[i] = crawl.Task{
			Behaviour: crawl.Behaviour, Campaign: campaign, Run: 1, ID: e.ID, URL: e.Request.URL, Host: e.Host,
			Epoch: int64(i + 1), AcceptedMS: now, Policy: spec.Retry,
		}
	}
	return tasks, nil
}

// spec is the campaign: as shipped, but for a site that may be asked at any rate.
func (b *Bench) spec(name string) crawl.Spec {
	s := crawl.DefaultSpec()
	s.Name, s.AllowPrivate = name, true
	s.Concurrency = b.opts.Concurrency
	s.Politeness.Delay, s.Politeness.PerHost = 0, b.opts.Concurrency
	return s
}
