package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/internal/frontier"
)

// How old a run's state and spec may be when a fetch starts by them.
const (
	stateAge = time.Second
	specAge  = 10 * time.Second
)

// runCache keeps runs' specs and states, so that a fetch costs no Redis call for them.
type runCache struct {
	frontier Frontier
	mu       sync.Mutex
	runs     map[string]*cachedRun
}

type cachedRun struct {
	mu      sync.Mutex
	info    frontier.RunInfo
	loaded  time.Time
	checked time.Time
}

func newRunCache(f Frontier) *runCache {
	return &runCache{frontier: f, runs: map[string]*cachedRun{}}
}

// get returns what is known of a run, its state at most a second old.
func (c *runCache) get(ctx context.Context, run string) (frontier.RunInfo, error) {
	c.mu.Lock()
	r, ok := c.runs[run]
	if !ok {
		r = &cachedRun{}
		c.runs[run] = r
	}
	c.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.loaded) > specAge {
		info, err := c.frontier.Run(ctx, run)
		if err != nil {
			return frontier.RunInfo{}, fmt.Errorf("read run %s: %w", run, err)
		}
		r.info, r.loaded, r.checked = info, now, now
		return r.info, nil
	}
	if now.Sub(r.checked) > stateAge {
		states, err := c.frontier.States(ctx, []string{run})
		if err != nil {
			return frontier.RunInfo{}, fmt.Errorf("read state of run %s: %w", run, err)
		}
		r.info.State, r.checked = states[0], now
	}
	return r.info, nil
}

// forget drops runs that have ended, so that the cache stays small.
func (c *runCache) forget(run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, run)
}
