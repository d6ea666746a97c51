package bench

import (
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"

	"holdfast/internal/results"
)

// The shapes.
const (
	Floor   = "floor"
	Product = "product"
	Naive   = "naive"
)

// Options of a benchmark.
type Options struct {
	// Count is the number of URLs of each shape in each round. Default 500.
	Count int
	// Rounds is how often each shape runs. Default 3.
	Rounds int
	// Concurrency is the number of URLs in flight. Default 100.
	Concurrency int
	// Proxies is the number of proxies, which share Concurrency. Default 8.
	Proxies int
	// Latency is how long the site thinks before each good page. Default 0.
	Latency time.Duration
	// Faults is the share of URLs, 0 to 1, that fail once before their page: a 503,
	// a page that breaks off, a reset, in turn. The floor has none.
	Faults float64
	// Shapes are those to run. Default: all, in the order of the constants.
	Shapes []string
	// Program is the command that runs Serve in a process of its own: the path of
	// the program and its arguments, to which Serve's are appended. Required.
	Program []string
	// Profile, if set, starts the names of CPU profiles, one a shape and round.
	Profile string
	// Progress is told how far it is. Default: nobody.
	Progress func(format string, args ...any)
}

// Place is where a benchmark runs. All fields are required.
type Place struct {
	// Temporal is the client of the host's workers too: eager starts work only so.
	Temporal  client.Client
	Namespace string
	// Redis is a database of the benchmark's own; Calls counts what goes over it.
	Redis *redis.Client
	Calls *Calls
	// Sink is the host's.
	Sink *results.Local
	// Worker is the host's name, Slots its slots.
	Worker string
	Slots  int
	// OwnTemporal and OwnRedis say that they run in this process, and so are in its CPU.
	OwnTemporal, OwnRedis bool
}

// SlotsFor returns the worker's slots for a number of URLs in flight: a worker
// starts eagerly only while less than half of them are taken.
func SlotsFor(concurrency int) int { return max(256, 2*concurrency+2) }

// AreShapes reports whether all names are those of shapes.
func AreShapes(names []string) bool {
	return !slices.ContainsFunc(names, func(s string) bool { return s != Floor && s != Product && s != Naive })
}

func (o *Options) defaults() error {
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	set(&o.Count, 500)
	set(&o.Rounds, 3)
	set(&o.Concurrency, 100)
	set(&o.Proxies, 8)
	if len(o.Shapes) == 0 {
		o.Shapes = []string{Floor, Product, Naive}
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	switch {
	case o.Count < 1 || o.Rounds < 1 || o.Concurrency < 1 || o.Proxies < 1:
		return errors.New("bench: counts are at least 1")
	case o.Faults < 0 || o.Faults > 1:
		return errors.New("bench: the share of faults is between 0 and 1")
	case o.Latency < 0:
		return errors.New("bench: the latency is not negative")
	case !AreShapes(o.Shapes):
		return errors.New("bench: there is no such shape")
	case len(o.Program) == 0:
		return errors.New("bench: no program for the site and the proxies")
	}
	return nil
}
