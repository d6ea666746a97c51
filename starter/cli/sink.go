package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/results"
)

// errElsewhere says that the registered sink cannot be read from here.
var errElsewhere = errors.New("results are elsewhere")

// sinkDir returns the folder of the registered results sink, if it is one of
// files and of this machine. The failure otherwise wraps errElsewhere and says
// where the results are.
func (s *session) sinkDir(ctx context.Context) (string, error) {
	registered, err := s.frontier.Sink(ctx)
	if err != nil {
		return "", s.redisFailure(err)
	}
	elsewhere := func(hint, format string, args ...any) error {
		f := failed("results_elsewhere", hint, format, args...)
		f.Err = errElsewhere
		return f
	}
	if registered == "" {
		return "", elsewhere("start a worker with --results file:///abs/dir", "no worker has registered where results go")
	}
	at, err := results.ParseURL(registered)
	if err != nil {
		return "", elsewhere("read them there", "results are at %s", oneLine(registered))
	}
	if _, err := os.Stat(at.Dir); err != nil {
		return "", elsewhere("run this command on the worker's machine", "results are at %s, which is not on this machine", at)
	}
	return at.Dir, nil
}

// record finds a URL's record in the sink. Nil: it is not there.
func findRecord(dir string, run frontier.RunInfo, u frontier.URLInfo) (*crawl.Record, error) {
	stream := results.StreamOf(u.State)
	for r, err := range results.Records(dir, run.Campaign, run.Run, stream) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read records of %s: %w", run.Name(), err)
		}
		if r.ID == u.ID && r.Replay == u.Replay {
			return &r, nil
		}
	}
	return nil, nil
}

// writeBody copies a record's decoded body to w.
func writeBody(dir string, r *crawl.Record, w io.Writer) error {
	if r.Body == nil {
		return failed("no_body", "", "%s has no body: it is %s%s", oneLine(r.URL), r.State, reasonIn(r))
	}
	body, err := results.OpenBody(results.RunDir(dir, r.Campaign, r.Run), *r.Body)
	if err != nil {
		return fmt.Errorf("open body of %s: %w", r.ID, err)
	}
	_, err = io.Copy(w, body)
	if err = errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("read body of %s: %w", r.ID, err)
	}
	return nil
}

func reasonIn(r *crawl.Record) string {
	if r.Reason == nil {
		return ""
	}
	return " (" + string(*r.Reason) + ")"
}

// printRecord shows a record for people.
func (a *App) printRecord(r *crawl.Record, dir string) {
	a.printf("%s\n", oneLine(r.URL))
	line := "  " + a.paint(string(r.State)) + reasonIn(r)
	if r.Status > 0 {
		line += fmt.Sprintf(" %d", r.Status)
	}
	if r.ContentType != "" {
		line += " " + oneLine(r.ContentType)
	}
	if r.State == crawl.Completed {
		line += fmt.Sprintf(", %s (%s on the wire)", size(r.Bytes), size(r.WireBytes))
	}
	a.printf("%s\n", line)
	if r.FinalURL != "" && r.FinalURL != r.URL {
		a.printf("  final url  %s\n", oneLine(r.FinalURL))
	}
	if r.SHA256 != "" {
		a.printf("  sha256     %s\n", r.SHA256)
	}
	if r.Body != nil && dir != "" {
		a.printf("  body       %s/%s\n", results.RunDir(dir, r.Campaign, r.Run), r.Body.Path)
	}
	for _, t := range r.Attempts {
		a.printf("  %s\n", attemptLine(t))
	}
}

// attemptLine is an attempt for people: "attempt 1: 429 target_transient via p17
// by w3 in 310 ms, then waited 7 s (Retry-After 7 s)".
func attemptLine(t crawl.Attempt) string {
	line := fmt.Sprintf("attempt %d: ", t.N)
	if t.Status > 0 {
		line += fmt.Sprintf("%d ", t.Status)
	}
	line += string(t.Class)
	if t.Reason != "" && string(t.Reason) != string(t.Class) {
		line += " " + string(t.Reason)
	}
	via := "direct"
	if t.Proxy != "" {
		via = "via " + t.Proxy
	}
	line += fmt.Sprintf(" %s by %s in %s", via, dash(oneLine(t.Worker)), span(ms(t.TookMS)))
	if t.ThenWaitMS > 0 {
		line += fmt.Sprintf(", then waited %s (%s)", span(ms(t.ThenWaitMS)), dash(oneLine(t.Why)))
	}
	return line
}
