package journal

import "time"

// clock gives each command its instant. It follows the wall clock, but never
// goes back: while the wall clock is behind (stepped back, or behind the last
// journaled instant after a restart) it goes on at the monotonic clock's pace, so
// that deadlines still come.
type clock struct {
	now    func() time.Time
	seen   time.Time     // the last reading, with its monotonic part
	pinned time.Time     // the last instant given
	step   time.Duration // the least that it moves by
}

// pin returns the next instant.
func (c *clock) pin() time.Time {
	t := c.now()
	if c.seen.IsZero() {
		c.seen = t
	}
	next := t.Round(0).UTC()
	if next.Before(c.pinned) {
		next = c.pinned.Add(max(0, t.Sub(c.seen)))
	}
	if next.Sub(c.pinned) >= c.step {
		c.seen, c.pinned = t, next
	}
	return c.pinned
}

// from makes t the earliest instant to be given.
func (c *clock) from(t time.Time) {
	if t.After(c.pinned) {
		c.pinned = t
	}
}
