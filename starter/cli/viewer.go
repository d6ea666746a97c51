package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"holdfast/internal/frontier"
)

// rateWindow is the time over which the rate is measured.
const rateWindow = 30 * time.Second

// lineEvery is the least time between two plain lines.
const lineEvery = 5 * time.Second

// viewer shows a run's progress: a bar that is drawn over on a terminal, plain
// lines elsewhere, JSON lines where that was asked for.
type viewer struct {
	app   *App
	w     io.Writer
	tty   bool
	quiet bool
	rate  rate
	drawn int // lines on the terminal to draw over
	shown string
	at    time.Time
}

func (a *App) newViewer(w io.Writer) *viewer {
	// On standard error a --output json command stays silent: its answer is the
	// summary on standard output.
	stdout := w == a.env.Stdout
	return &viewer{app: a, w: w, tty: a.env.IsTTY(w) && !a.json(), quiet: a.opts.quiet && !stdout || a.json() && !stdout}
}

// show fills in the rate and the ETA and shows the run.
func (v *viewer) show(view *RunView, over bool) error {
	now := v.app.env.Now()
	view.Rate = v.rate.add(now, view.Done())
	if left := view.Accepted - view.Done(); view.Rate > 0 && left > 0 {
		view.ETAMS = int64(float64(left) / view.Rate * 1000)
	}
	switch {
	case v.quiet:
		return nil
	case v.app.json():
		return v.app.printJSON(view)
	case v.tty:
		v.draw(view)
		return nil
	}
	line := plainLine(view)
	if over || v.at.IsZero() || line != v.shown && now.Sub(v.at) >= lineEvery {
		v.shown, v.at = line, now
		_, err := fmt.Fprintln(v.w, line+v.pace(view))
		return err
	}
	return nil
}

// leave ends the drawing where the watching is interrupted.
func (v *viewer) leave() { v.drawn = 0 }

// draw paints over what was drawn before.
func (v *viewer) draw(view *RunView) {
	lines := []string{
		fmt.Sprintf("%s  %s  %s %d/%d%s", view.Name, view.State, bar(view.Done(), view.Accepted, 24), view.Done(), view.Accepted, v.pace(view)),
		fmt.Sprintf("  queued %d  running %d  waiting %d  completed %d  failed %d  skipped %d  canceled %d",
			view.Queued, view.Running, view.Waiting, view.Completed, view.Failed, view.Skipped, view.Canceled),
	}
	for i, w := range view.WaitsFor {
		if i == 3 {
			lines = append(lines, fmt.Sprintf("  and %d more groups wait", len(view.WaitsFor)-i))
			break
		}
		lines = append(lines, "  "+v.app.waitLine(w))
	}
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", v.drawn)
	}
	width := v.app.env.Width()
	for _, l := range lines {
		b.WriteString(clip(l, width) + "\n")
	}
	v.drawn = len(lines)
	_, _ = io.WriteString(v.w, b.String())
}

// pace is the rate and the ETA for people.
func (v *viewer) pace(view *RunView) string {
	if view.Rate == 0 || !view.State.Open() {
		return ""
	}
	out := fmt.Sprintf("  %.1f/s", view.Rate)
	if view.ETAMS > 0 {
		out += "  ETA " + span(time.Duration(view.ETAMS)*time.Millisecond)
	}
	return out
}

// plainLine is a run on one line, without what changes each second.
func plainLine(v *RunView) string {
	line := fmt.Sprintf("%s %s: %d of %d done, %d queued, %d running, %d waiting, %d completed, %d failed, %d skipped, %d canceled",
		v.Name, v.State, v.Done(), v.Accepted, v.Queued, v.Running, v.Waiting, v.Completed, v.Failed, v.Skipped, v.Canceled)
	if len(v.WaitsFor) > 0 && v.State != frontier.RunFinished {
		w := v.WaitsFor[0]
		line += fmt.Sprintf("; most wait for %s (%s)", oneLine(or(w.Host, "a turn")), w.Why)
	}
	return line
}

// bar draws n of total in width cells.
func bar(n, total int64, width int) string {
	full := 0
	if total > 0 {
		full = int(n * int64(width) / total)
	}
	full = min(max(full, 0), width)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// clip cuts a line to the terminal's width, so that drawing over it works.
func clip(s string, width int) string {
	if r := []rune(s); width > 1 && len(r) >= width {
		return string(r[:width-2]) + "…"
	}
	return s
}

// rate measures ended URLs a second over the last rateWindow.
type rate struct{ seen []sample }

type sample struct {
	at time.Time
	n  int64
}

func (r *rate) add(at time.Time, n int64) float64 {
	r.seen = append(r.seen, sample{at, n})
	first := 0
	for first < len(r.seen)-2 && at.Sub(r.seen[first].at) > rateWindow {
		first++
	}
	r.seen = r.seen[first:]
	span := at.Sub(r.seen[0].at).Seconds()
	if span <= 0 {
		return 0
	}
	return float64(n-r.seen[0].n) / span
}
