package bench

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Report is what a benchmark came to.
type Report struct {
	Count       int     `json:"count"`
	Rounds      int     `json:"rounds"`
	Concurrency int     `json:"concurrency"`
	LatencyMS   int64   `json:"latency_ms"`
	Faults      float64 `json:"faults"`
	CPUs        int     `json:"cpus"`
	// Temporal and Redis are "embedded", and so in the CPU, or "elsewhere".
	Temporal string `json:"temporal"`
	Redis    string `json:"redis"`
	// Measures are the rounds in the order they ran; Shapes the median of each
	// field over a shape's rounds; Ratios compare shapes within each round.
	Measures []Measure          `json:"measures"`
	Shapes   map[string]Measure `json:"shapes"`
	Ratios   []Ratio            `json:"ratios"`
}

// Measure is one shape in one round. All but the first fields are a URL's.
type Measure struct {
	Shape   string  `json:"shape"`
	Round   int     `json:"round,omitempty"`
	Seconds float64 `json:"seconds"`
	PerSec  float64 `json:"urls_per_second"`
	// CPUMS is the CPU time of this process: the worker, and what is embedded.
	CPUMS float64 `json:"cpu_ms"`
	// GCCPUMS is what of it the collector took, by the runtime's own estimate.
	GCCPUMS float64 `json:"gc_cpu_ms"`
	// RedisCPUMS is a real Redis' own, by its INFO; LabCPUMS that of the site and
	// the proxies, which is nobody's cost and takes from the same cores.
	RedisCPUMS float64 `json:"redis_cpu_ms"`
	LabCPUMS   float64 `json:"site_cpu_ms"`
	// Events and HistoryBytes are the workflow's and its share of its parent's.
	Events       float64 `json:"history_events"`
	HistoryBytes float64 `json:"history_bytes"`
	// Eager is the share of workflows that were started eagerly.
	Eager float64 `json:"eager"`
	// RedisCalls counts commands, RedisTrips round trips: a pipeline is one.
	RedisCalls float64 `json:"redis_calls"`
	RedisTrips float64 `json:"redis_round_trips"`
	RedisBytes float64 `json:"redis_bytes"`
	Allocs     float64 `json:"allocs"`
	AllocBytes float64 `json:"alloc_bytes"`
	// PeakHeap and PeakRSS are the process' own, in bytes, all shapes' workers in it.
	PeakHeap int64 `json:"peak_heap_bytes"`
	PeakRSS  int64 `json:"peak_rss_bytes"`
}

// Ratio compares two shapes over the rounds.
type Ratio struct {
	// Name is what is divided by what: "product/floor cpu_ms".
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func newReport(o Options, at Place) *Report {
	place := func(own bool) string {
		if own {
			return "embedded"
		}
		return "elsewhere"
	}
	return &Report{
		Count: o.Count, Rounds: o.Rounds, Concurrency: o.Concurrency, LatencyMS: o.Latency.Milliseconds(), Faults: o.Faults,
		CPUs: runtime.NumCPU(), Temporal: place(at.OwnTemporal), Redis: place(at.OwnRedis), Shapes: map[string]Measure{},
	}
}

func newMeasure(shape string, round, n int, took time.Duration, a, b usage, p *peaks, h histories) Measure {
	per := func(v float64) float64 { return v / float64(n) }
	ms := func(d time.Duration) float64 { return per(float64(d) / float64(time.Millisecond)) }
	return Measure{
		Shape: shape, Round: round, Seconds: took.Seconds(), PerSec: float64(n) / took.Seconds(),
		CPUMS: ms(b.cpu - a.cpu), RedisCPUMS: ms(b.redisCPU - a.redisCPU), LabCPUMS: ms(b.labCPU - a.labCPU),
		GCCPUMS: per(1000 * (b.gcCPU - a.gcCPU)), Events: h.events, HistoryBytes: h.bytes, Eager: h.eager,
		RedisCalls: per(float64(b.commands - a.commands)), RedisTrips: per(float64(b.trips - a.trips)),
		RedisBytes: per(float64(b.sent + b.receive - a.sent - a.receive)),
		Allocs:     per(float64(b.allocs - a.allocs)), AllocBytes: per(float64(b.allocated - a.allocated)),
		PeakHeap: int64(p.heap), PeakRSS: p.rss,
	}
}

func (m Measure) String() string {
	return fmt.Sprintf("%6.1f URLs/s, %6.2f ms CPU, %.1f events, %.1f Redis calls a URL", m.PerSec, m.CPUMS, m.Events, m.RedisCalls)
}

// fields are the numbers of a Measure that have a median.
func (m *Measure) fields() []*float64 {
	return []*float64{
		&m.Seconds, &m.PerSec, &m.CPUMS, &m.GCCPUMS, &m.RedisCPUMS, &m.LabCPUMS, &m.Events, &m.HistoryBytes, &m.Eager,
		&m.RedisCalls, &m.RedisTrips, &m.RedisBytes, &m.Allocs, &m.AllocBytes,
	}
}

// sum fills Shapes and Ratios from Measures.
func (r *Report) sum() {
	by := map[string][]Measure{}
	for _, m := range r.Measures {
		by[m.Shape] = append(by[m.Shape], m)
	}
	for name, rounds := range by {
		mid := Measure{Shape: name}
		for i, f := range mid.fields() {
			values := make([]float64, len(rounds))
			for j := range rounds {
				values[j] = *rounds[j].fields()[i]
			}
			*f = median(values)
		}
		for _, m := range rounds {
			mid.PeakHeap, mid.PeakRSS = max(mid.PeakHeap, m.PeakHeap), max(mid.PeakRSS, m.PeakRSS)
		}
		r.Shapes[name] = mid
	}
	cpu := func(m Measure) float64 { return m.CPUMS }
	r.ratio(by, "product/floor cpu_ms", Product, Floor, cpu)
	r.ratio(by, "naive/product cpu_ms", Naive, Product, cpu)
	r.ratio(by, "naive/floor cpu_ms", Naive, Floor, cpu)
	rate := func(m Measure) float64 { return m.PerSec }
	r.ratio(by, "product/floor urls_per_second", Product, Floor, rate)
	r.ratio(by, "product/naive urls_per_second", Product, Naive, rate)
}

// ratio divides what v gives of over by that of under, round by round.
func (r *Report) ratio(by map[string][]Measure, name, over, under string, v func(Measure) float64) {
	var all []float64
	for i := range min(len(by[over]), len(by[under])) {
		if d := v(by[under][i]); d > 0 {
			all = append(all, v(by[over][i])/d)
		}
	}
	if len(all) > 0 {
		r.Ratios = append(r.Ratios, Ratio{Name: name, Median: median(all), Min: slices.Min(all), Max: slices.Max(all)})
	}
}

// median is the middle, or the mean of the two in the middle; it sorts v.
func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}
