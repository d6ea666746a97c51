package crawl

import "time"

// Seed makes the seed of a run's draws from its id (the ORIGINAL run id: a reset
// gives a new one, and a replay must draw what the first run drew).
func Seed(runID string) uint64 {
	// FNV-1a, 64 bits.
	h := uint64(14695981039346656037)
	for i := range len(runID) {
		h = (h ^ uint64(runID[i])) * 1099511628211
	}
	return h
}

// Draw returns a number in [0, 1) that depends on seed and n alone (SplitMix64):
// workflow code has no generator of its own, and a replay years later, on another
// version of Go, must see the same numbers.
func Draw(seed uint64, n int) float64 {
	z := seed + uint64(n)*0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}

// Decorrelated returns the next backoff by decorrelated jitter: uniform between
// base and three times the previous one, at most limit. previous 0 means base.
func Decorrelated(base, limit, previous time.Duration, draw float64) time.Duration {
	if previous < base {
		previous = base
	}
	if previous > limit {
		previous = limit
	}
	d := base + time.Duration(draw*float64(3*previous-base))
	return min(d, limit)
}
