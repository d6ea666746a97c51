package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"holdfast/internal/bench"
)

// benchTable shows a report: a column a shape with its medians, then the ratios.
func benchTable(r *bench.Report) string {
	var shapes []string
	header := []any{"a URL, median of " + fmt.Sprint(r.Rounds)}
	for _, name := range []string{bench.Floor, bench.Product, bench.Naive} {
		if _, ok := r.Shapes[name]; ok {
			shapes, header = append(shapes, name), append(header, name)
		}
	}
	t := newTable(header...)
	right := []table.ColumnConfig{{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight}}
	t.SetColumnConfigs(right)
	row := func(title, format string, of func(bench.Measure) any) {
		line := table.Row{title}
		for _, name := range shapes {
			line = append(line, fmt.Sprintf(format, of(r.Shapes[name])))
		}
		t.AppendRow(line)
	}
	row("URLs/s", "%.1f", func(m bench.Measure) any { return m.PerSec })
	row("CPU, ms", "%.2f", func(m bench.Measure) any { return m.CPUMS })
	row("of it the collector, ms", "%.2f", func(m bench.Measure) any { return m.GCCPUMS })
	if r.Redis != "embedded" {
		row("Redis' own CPU, ms", "%.2f", func(m bench.Measure) any { return m.RedisCPUMS })
	}
	row("not counted: site and proxies, ms", "%.2f", func(m bench.Measure) any { return m.LabCPUMS })
	row("history events", "%.1f", func(m bench.Measure) any { return m.Events })
	row("history bytes", "%.0f", func(m bench.Measure) any { return m.HistoryBytes })
	row("started eagerly, %", "%.0f", func(m bench.Measure) any { return 100 * m.Eager })
	row("Redis calls", "%.2f", func(m bench.Measure) any { return m.RedisCalls })
	row("Redis round trips", "%.2f", func(m bench.Measure) any { return m.RedisTrips })
	row("Redis bytes", "%.0f", func(m bench.Measure) any { return m.RedisBytes })
	row("allocations", "%.0f", func(m bench.Measure) any { return m.Allocs })
	row("allocated, kB", "%.0f", func(m bench.Measure) any { return m.AllocBytes / 1000 })
	row("peak heap of the process, MB", "%.0f", func(m bench.Measure) any { return float64(m.PeakHeap) / 1e6 })
	row("peak memory of the process, MB", "%.0f", func(m bench.Measure) any { return float64(m.PeakRSS) / 1e6 })

	ratios := newTable("ratio, round by round", "median", "min", "max")
	ratios.SetColumnConfigs(right)
	for _, x := range r.Ratios {
		ratios.AppendRow(table.Row{x.Name, fmt.Sprintf("%.2f", x.Median), fmt.Sprintf("%.2f", x.Min), fmt.Sprintf("%.2f", x.Max)})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds of %d URLs, %d in flight; Temporal %s, Redis %s, %d CPUs.\n\n%s\n\n%s\n",
		r.Rounds, r.Count, r.Concurrency, r.Temporal, r.Redis, r.CPUs, t.Render(), ratios.Render())
	return b.String()
}
