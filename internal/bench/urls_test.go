package bench_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/bench"
)

func TestTheShareOfFaultyURLsIsTheOneAskedFor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		share float64
		want  int
	}{{0, 0}, {0.1, 30}, {0.25, 75}, {1, 300}} {
		o := bench.Options{Faults: tc.share, Latency: 200 * time.Millisecond}
		kinds, paths := map[string]int{}, map[string]bool{}
		faulty := 0
		for i := range 300 {
			p := o.Path("r", i)
			if paths[p] {
				t.Fatalf("%s stands twice", p)
			}
			paths[p] = true
			kind := strings.Split(p, "/")[1]
			kinds[kind]++
			if kind != "slow" {
				faulty++
			}
		}
		if faulty != tc.want {
			t.Errorf("share %v: %d of 300 are faulty, want %d", tc.share, faulty, tc.want)
		}
		if tc.want > 0 && (kinds["flaky"] == 0 || kinds["truncated"] == 0 || kinds["reset"] == 0) {
			t.Errorf("share %v: kinds %v, want all three", tc.share, kinds)
		}
	}
}

func TestPagesComeAtOnceWithoutLatency(t *testing.T) {
	t.Parallel()
	if got := (bench.Options{}).Path("r", 7); got != "/ok/r-7" {
		t.Errorf("path %q", got)
	}
}
