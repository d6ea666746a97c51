// Package activities holds the steps of the workflows that touch the world: one
// struct with its dependencies, each method a thin step over a package below.
package activities

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"holdfast/workflows"
)

// Config holds what the activities stand on. All fields are required.
type Config struct {
	Pool     Leaser
	Frontier Frontier
	Sink     Sink
	Exchange Exchanger
	Redis    redis.UniversalClient
	// Temporal is the worker's OWN client: eager starts work only through it.
	Temporal  client.Client
	Namespace string
	// Worker names this process in records: name/pid/start.
	Worker string
	// Slots is the number of URLs in flight in this worker.
	Slots   int
	Version string
	Log     *zap.Logger
}

// Activities implements every activity of workflows/api.go.
type Activities struct {
	Config
	flights *flights
	runs    *runCache
	pages   *pageCache
	peers   peerCount
	robots  *robotsShelves
}

// New returns the activities over c.
func New(c Config) *Activities {
	return &Activities{
		Config:  c,
		flights: newFlights(),
		runs:    newRunCache(c.Frontier),
		pages:   newPageCache(4 * c.Slots),
		robots:  &robotsShelves{redis: c.Redis, byAgent: map[string]*robotsShelf{}},
	}
}

// Named returns the activities by the names under which workflows call them.
func (a *Activities) Named() map[string]any {
	return map[string]any{
		workflows.ActivityFetch:    a.Fetch,
		workflows.ActivityFinish:   a.Finish,
		workflows.ActivityAbort:    a.Abort,
		workflows.ActivityFeed:     a.Feed,
		workflows.ActivityDrain:    a.Drain,
		workflows.ActivityFinalize: a.Finalize,
	}
}

// Running returns the number of fetches that hold a slot here.
func (a *Activities) Running() int { return a.flights.len() }

// token returns a random name for one execution.
func token() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

// ceilMS returns d in milliseconds, rounded up, at least 1 for a positive d.
func ceilMS(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
