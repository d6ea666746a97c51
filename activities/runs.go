package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"holdfast/internal/frontier"
)

// How old a run's state and spec may be when a fetch starts by them.
const (
	stateAge = time.Second
	specAge  = 10 * time.Second
	// runsKept is the number of runs above which those not used lately go.
	runsKept = 64
)

// runCache keeps runs' specs and states, so that a fetch costs no Redis call for
// them. One look at Redis at a time serves all who wait for a run, its failure
// too: fetches that queued up to fail one after the other would fill every slot.
type runCache struct {
	frontier Frontier
	looks    singleflight.Group
	mu       sync.Mutex
	runs     map[string]cachedRun
}

type cachedRun struct {
	info    frontier.RunInfo
	loaded  time.Time
	checked time.Time
}

func newRunCache(f Frontier) *runCache {
	return &runCache{frontier: f, runs: map[string]cachedRun{}}
}

// get returns what is known of a run, its state at most a second old.
func (c *runCache) get(ctx context.Context, run string) (frontier.RunInfo, error) {
	if r := c.known(run); time.Since(r.checked) <= stateAge && time.Since(r.loaded) <= specAge {
		return r.info, nil
	}
	look := c.looks.DoChan(run, func() (any, error) { return c.look(context.WithoutCancel(ctx), run) })
	select {
	case got := <-look:
		if got.Err != nil {
			return frontier.RunInfo{}, got.Err
		}
		info, _ := got.Val.(frontier.RunInfo)
		return info, nil
	case <-ctx.Done():
		return frontier.RunInfo{}, context.Cause(ctx)
	}
}

func (c *runCache) known(run string) cachedRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[run]
}

// look reads the run's state and, now and then, all of it.
func (c *runCache) look(ctx context.Context, run string) (frontier.RunInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, now := c.known(run), time.Now()
	if now.Sub(r.loaded) > specAge {
		info, err := c.frontier.Run(ctx, run)
		if err != nil {
			return frontier.RunInfo{}, fmt.Errorf("read run %s: %w", run, err)
		}
		r.info, r.loaded = info, now
	} else {
		states, err := c.frontier.States(ctx, []string{run})
		if err != nil {
			return frontier.RunInfo{}, fmt.Errorf("read state of run %s: %w", run, err)
		}
		r.info.State = states[0]
	}
	r.checked = now
	c.keep(run, r)
	return r.info, nil
}

func (c *runCache) keep(run string, r cachedRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.runs) >= runsKept {
		for name, old := range c.runs {
			if time.Since(old.checked) > specAge {
				delete(c.runs, name)
			}
		}
	}
	c.runs[run] = r
}

// forget drops a run that has ended.
func (c *runCache) forget(run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, run)
}
