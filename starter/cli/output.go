package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

func (a *App) json() bool { return a.opts.output == "json" }

// printJSON writes v as one line of JSON to standard output.
func (a *App) printJSON(v any) error {
	enc := json.NewEncoder(a.env.Stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// printf writes to standard output.
func (a *App) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(a.env.Stdout, format, args...)
}

// note writes a remark to standard error, unless --quiet.
func (a *App) note(format string, args ...any) {
	if !a.opts.quiet {
		_, _ = fmt.Fprintf(a.env.Stderr, format+"\n", args...)
	}
}

// coloured reports whether w shows colours: a terminal, and no NO_COLOR
// (https://no-color.org: set and not empty).
func (a *App) coloured(w io.Writer) bool {
	return a.env.IsTTY(w) && a.env.getenv("NO_COLOR") == ""
}

// grid is a table on its way to standard output.
type grid struct {
	app *App
	w   table.Writer
}

// newGrid starts a table with these column titles.
func (a *App) newGrid(titles ...any) *grid {
	w := table.NewWriter()
	w.SetOutputMirror(a.env.Stdout)
	style := table.StyleDefault
	style.Options = table.Options{SeparateColumns: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", " "
	style.Box.MiddleVertical = " "
	style.Format.Header = text.FormatUpper
	if a.coloured(a.env.Stdout) {
		style.Color.Header = text.Colors{text.Bold}
	}
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	if len(titles) > 0 {
		w.AppendHeader(titles)
	}
	return &grid{app: a, w: w}
}

func (g *grid) row(cells ...any) { g.w.AppendRow(cells) }

// right aligns the numbered columns (from 1) to the right.
func (g *grid) right(columns ...int) {
	configs := make([]table.ColumnConfig, len(columns))
	for i, n := range columns {
		configs[i] = table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	g.w.SetColumnConfigs(configs)
}

func (g *grid) print() { g.w.Render() }

// paint colours a word by what it means to the reader.
func (a *App) paint(word string) string {
	if !a.coloured(a.env.Stdout) {
		return word
	}
	switch word {
	case "completed", "ok", "finished", "active", "healthy":
		return text.FgGreen.Sprint(word)
	case "failed", "quarantined", "error", "blocked":
		return text.FgRed.Sprint(word)
	case "waiting", "warning", "cooling", "canceled", "canceling", "skipped", "paused":
		return text.FgYellow.Sprint(word)
	}
	return word
}

// dash shows an empty value.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// span shows a duration for people: 310 ms, 7 s, 2 min 5 s, 6 h 0 min, 3 d 2 h.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// size shows bytes for people, in binary units.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

// moment shows a time in the reader's zone, to the second.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// oneLine keeps foreign text from breaking out of its line or painting the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, s)
}

// ms is a number of milliseconds as a duration.
func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
