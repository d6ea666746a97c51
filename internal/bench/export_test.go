package bench

// Summed is a report of rounds.
func Summed(rounds []Measure) *Report {
	r := &Report{Measures: rounds, Shapes: map[string]Measure{}}
	r.sum()
	return r
}

// Counts returns what was counted so far.
func (c *Calls) Counts() (commands, trips, bytes int64) {
	return c.commands.Load(), c.trips.Load(), c.sent.Load() + c.received.Load()
}

// Path is the path of the i-th URL.
func (o Options) Path(round string, i int) string { return o.path(round, i) }
