package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"holdfast/proxypool"
)

// Bench is one benchmark on its place.
type Bench struct {
	opts Options
	at   Place
	lab  *scene
	// run makes names of one run differ from those of the next.
	run string
}

// shape is one of the three ways.
type shape interface {
	start() error
	stop()
	// run takes n URLs through, and returns when all their workflows have closed.
	run(ctx context.Context, round string, n int) (done, error)
}

// done names what a round left in Temporal.
type done struct {
	ids []string
	// parent, if any, shares its history among perParent URLs; 0: all.
	parent    string
	perParent int
}

// settle is how long a shape's window stays open after its last workflow has
// closed: what the server puts off is part of the cost, and not of the next shape's.
const settle = time.Second

// Run measures, and returns when the site, the proxies and the shapes' workers
// have stopped. The host's worker must run at place already.
func Run(ctx context.Context, place Place, opts Options) (_ *Report, err error) {
	if err := opts.defaults(); err != nil {
		return nil, err
	}
	b := &Bench{opts: opts, at: place, run: fmt.Sprintf("%x", time.Now().UnixMilli())}
	if b.lab, err = newScene(opts.Program, opts.Proxies); err != nil {
		return nil, err
	}
	defer b.lab.close()
	if err := b.importProxies(ctx); err != nil {
		return nil, err
	}
	names, shapes := b.shapes()
	for _, s := range shapes {
		if err := s.start(); err != nil {
			return nil, fmt.Errorf("start worker: %w", err)
		}
		defer s.stop()
	}
	report := newReport(opts, place)
	warm := min(max(opts.Count/10, 20), opts.Count)
	for i, s := range shapes {
		opts.Progress("warming up: %s, %d", names[i], warm)
		if _, err := s.run(ctx, fmt.Sprintf("%s-w-%s", b.run, names[i]), warm); err != nil {
			return nil, fmt.Errorf("warm up %s: %w", names[i], err)
		}
	}
	for round := 1; round <= opts.Rounds; round++ {
		for turn := range shapes {
			// Each round begins with another one: none is always the first.
			i := (turn + round - 1) % len(shapes)
			m, err := b.measure(ctx, names[i], round, shapes[i])
			if err != nil {
				return nil, fmt.Errorf("round %d, %s: %w", round, names[i], err)
			}
			opts.Progress("round %d of %d: %-7s %s", round, opts.Rounds, names[i], m)
			report.Measures = append(report.Measures, m)
		}
	}
	report.sum()
	return report, b.allocsProfile()
}

func (b *Bench) shapes() (names []string, shapes []shape) {
	add := func(name string, make func() shape) {
		if slices.Contains(b.opts.Shapes, name) {
			names, shapes = append(names, name), append(shapes, make())
		}
	}
	add(Floor, func() shape { return newFloor(b) })
	add(Product, func() shape { return &product{b: b} })
	add(Naive, func() shape { return newNaive(b) })
	return names, shapes
}

func (b *Bench) importProxies(ctx context.Context) error {
	entries, err := proxypool.ParseList(strings.NewReader(strings.Join(b.lab.proxies, "\n")), "bench", proxypool.ImportOptions{})
	if err != nil {
		return err
	}
	each := (b.opts.Concurrency + b.opts.Proxies - 1) / b.opts.Proxies
	_, err = proxypool.New(b.at.Redis, proxypool.Options{}).Import(ctx, entries, proxypool.ImportOptions{Source: "bench", MaxConcurrency: each})
	return err
}

// measure runs one shape once between two looks at what has been spent.
func (b *Bench) measure(ctx context.Context, name string, round int, s shape) (_ Measure, err error) {
	id := fmt.Sprintf("%s-%d-%s", b.run, round, name)
	runtime.GC() // nobody pays for another's garbage
	before, err := b.usage(ctx)
	if err != nil {
		return Measure{}, err
	}
	stop, err := b.profile(name, round)
	if err != nil {
		return Measure{}, err
	}
	peak := watchPeaks()
	started := time.Now()
	d, err := s.run(ctx, id, b.opts.Count)
	took := time.Since(started)
	if err == nil {
		err = pause(ctx, settle)
	}
	peak.stop()
	stop()
	if err != nil {
		return Measure{}, err
	}
	runtime.GC() // what one leaves is its own to collect, and the runtime's account is drawn up
	after, err := b.usage(ctx)
	if err != nil {
		return Measure{}, err
	}
	h, err := b.histories(ctx, d)
	if err != nil {
		return Measure{}, err
	}
	return newMeasure(name, round, b.opts.Count, took, before, after, peak, h), nil
}

// profile writes a CPU profile of the round, if profiles are asked for.
func (b *Bench) profile(name string, round int) (stop func(), err error) {
	if b.opts.Profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(fmt.Sprintf("%s-%s-%d.pprof", b.opts.Profile, name, round))
	if err != nil {
		return nil, fmt.Errorf("create profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("start profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// allocsProfile writes what was allocated since the process began.
func (b *Bench) allocsProfile() error {
	if b.opts.Profile == "" {
		return nil
	}
	f, err := os.Create(b.opts.Profile + "-allocs.pprof")
	if err == nil {
		err = errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
	}
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
