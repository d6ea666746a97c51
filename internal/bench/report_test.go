package bench_test

import (
	"math"
	"testing"

	"holdfast/internal/bench"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	// The machine is twice as slow in round 2: ratios within a round do not show it.
	r := bench.Summed([]bench.Measure{
		{Shape: bench.Floor, Round: 1, CPUMS: 10, PerSec: 100, PeakHeap: 5},
		{Shape: bench.Product, Round: 1, CPUMS: 15, PerSec: 80},
		{Shape: bench.Product, Round: 2, CPUMS: 30, PerSec: 40},
		{Shape: bench.Floor, Round: 2, CPUMS: 20, PerSec: 50, PeakHeap: 7},
		{Shape: bench.Floor, Round: 3, CPUMS: 11, PerSec: 90, PeakHeap: 6},
		{Shape: bench.Product, Round: 3, CPUMS: 22, PerSec: 45},
	})
	if f := r.Shapes[bench.Floor]; f.CPUMS != 11 || f.PerSec != 90 || f.PeakHeap != 7 {
		t.Errorf("floor: %+v, want the medians 11 and 90, and the largest heap 7", f)
	}
	ratios := map[string]bench.Ratio{}
	for _, x := range r.Ratios {
		ratios[x.Name] = x
	}
	if x := ratios["product/floor cpu_ms"]; x.Median != 1.5 || x.Min != 1.5 || x.Max != 2 {
		t.Errorf("product/floor %+v, want 1.5, from 1.5 to 2", x)
	}
	if _, ok := ratios["naive/product cpu_ms"]; ok {
		t.Error("there is a ratio of a shape that did not run")
	}
}

func TestMedianOfAnEvenNumberIsTheMeanOfTheMiddle(t *testing.T) {
	t.Parallel()
	r := bench.Summed([]bench.Measure{{Shape: bench.Floor, CPUMS: 9}, {Shape: bench.Floor, CPUMS: 1}, {Shape: bench.Floor, CPUMS: 2}, {Shape: bench.Floor, CPUMS: 3}})
	if got := r.Shapes[bench.Floor].CPUMS; math.Abs(got-2.5) > 1e-9 {
		t.Errorf("median %v, want 2.5", got)
	}
}
