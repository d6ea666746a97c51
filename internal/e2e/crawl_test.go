package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/internal/lab"
	"holdfast/internal/results"
	"holdfast/proxypool"
)

// recoverWithin is the time from the start after a SIGKILL to the first further
// result, and to the first URL asked that nobody had claimed before. A machine on
// which a first start takes longer than quietStart to its first result is given the
// difference.
const (
	recoverWithin = 15 * time.Second
	quietStart    = 4 * time.Second
)

// crawling is a `standalone crawl` that can be run again and again.
type crawling struct {
	t    *testing.T
	dir  string
	site *lab.Site
	args []string
}

// newCrawling writes a list of n pages and one of proxies.
func newCrawling(t *testing.T, n, proxies int, path func(i int) string) *crawling {
	t.Helper()
	c := &crawling{t: t, dir: t.TempDir()}
	var err error
	if c.site, err = lab.NewSite(lab.SiteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.site.Close() })
	var list strings.Builder
	for range proxies {
		p, err := lab.NewProxy(lab.ProxyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		list.WriteString(p.ListLine() + "\n")
	}
	c.args = []string{
		"crawl", "--data", c.data(), "--out", c.out(), "--delay", "0s", "--per-host", "16", "--robots", "ignore",
		"--output", "json", "--proxies", c.file("proxies.txt", list.String()),
		"--urls", c.file("urls.txt", c.lines(0, n, path)),
	}
	return c
}

func (c *crawling) data() string { return filepath.Join(c.dir, "data") }
func (c *crawling) out() string  { return filepath.Join(c.dir, "results") }

func (c *crawling) lines(from, to int, path func(i int) string) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(c.site.URL(path(i)) + "\n")
	}
	return b.String()
}

func (c *crawling) file(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func (c *crawling) launch() *process {
	return launch(c.t, "standalone crawl", io.Discard, bin.standalone, c.args...)
}

// written returns the URLs that have a whole line in the record files now.
func (c *crawling) written() map[string]bool {
	c.t.Helper()
	urls := map[string]bool{}
	for r, err := range results.Records(c.out(), "crawl", 1, results.All) {
		if err == nil {
			urls[r.URL] = true
		}
	}
	return urls
}

// recovered measures how long a process started at t0 took to finish a URL that
// before does not have, and until more than asked URLs had been asked.
func (c *crawling) recovered(p *process, t0 time.Time, before map[string]bool, asked int) (finished, fed time.Duration) {
	c.t.Helper()
	poll(c.t, time.Minute, "the crawl goes on", func() bool {
		select {
		case <-p.done:
			c.t.Fatalf("the crawl ended by itself: %d\n%s", p.cmd.ProcessState.ExitCode(), p.err.String())
		default:
		}
		if finished == 0 && len(c.written()) > len(before) {
			finished = time.Since(t0)
		}
		if fed == 0 && c.asked() > asked {
			fed = time.Since(t0)
		}
		return finished > 0 && fed > 0
	})
	return finished, fed
}

// asked counts the pages that were asked at least once.
func (c *crawling) asked() int {
	seen := map[string]bool{}
	for _, v := range c.site.Visits() {
		seen[v.Path] = true
	}
	return len(seen)
}

func poll(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", within, what)
		}
	}
}

func TestACrawlKilledTwiceGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	const n, lanes = 200, 8
	page := func(i int) string { return fmt.Sprintf("/slow/%d?ms=30", i) }
	c := newCrawling(t, n, lanes, page)

	var kills []time.Time
	begin := time.Now()
	p := c.launch()
	poll(t, 90*time.Second, "the first is done", func() bool { return len(c.written()) > 0 })
	first := time.Since(begin)
	allowed := recoverWithin + max(0, first-quietStart)
	t.Logf("a first start took %v to its first result", first.Round(10*time.Millisecond))
	for _, share := range []int{n / 3, 2 * n / 3} {
		poll(t, 90*time.Second, fmt.Sprintf("%d of %d done", share, n), func() bool {
			select {
			case <-p.done:
				t.Fatalf("the crawl ended by itself: %s", p.err.String())
			default:
			}
			return len(c.written()) >= share
		})
		p.kill()
		kills = append(kills, time.Now())
		before, asked := c.written(), c.asked()+lanes // lanes of them claimed at most
		if len(before) >= n {
			t.Fatalf("the kill came too late: %d of %d done", len(before), n)
		}
		start := time.Now()
		p = c.launch()
		finished, fed := c.recovered(p, start, before, asked)
		t.Logf("killed at %d of %d: first further URL finished after %v, one that was not claimed asked after %v",
			len(before), n, finished.Round(10*time.Millisecond), fed.Round(10*time.Millisecond))
		if finished > allowed || fed > allowed {
			t.Errorf("recovery took %v and %v, want at most %v", finished, fed, allowed)
		}
	}
	if code := p.exit(3 * time.Minute); code != 0 {
		t.Fatalf("exit %d\n%s", code, p.err.String())
	}
	records := readRecords(t, c.out(), "crawl", 1)
	wantAllCompleted(t, records, n)
	noneRepeated(t, c.site.Visits(), records, kills, 30*time.Millisecond)
	c.settled(n)

	total := c.site.Total()
	out, _, code := runs(t, bin.standalone, c.args...)
	if code != 0 || !strings.Contains(out, `"completed":200`) {
		t.Errorf("run again after its end: exit %d, %s", code, out)
	}
	if c.site.Total() != total {
		t.Errorf("run again after its end it asked the site %d times", c.site.Total()-total)
	}
	c.file("urls.txt", c.lines(0, n+1, page))
	_, said, code := runs(t, bin.standalone, c.args...)
	if code != 2 || !strings.Contains(said, "200 URLs") || !strings.Contains(said, "201") {
		t.Errorf("other input under the same name: exit %d, %s", code, said)
	}
	if c.site.Total() != total {
		t.Errorf("a refused crawl asked the site")
	}
}

// settled looks into the services once the crawl has ended: nothing is open.
func (c *crawling) settled(n int64) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	s := &stack{t: c.t, ctx: ctx, dir: c.dir}
	s.services, s.at = up(c.t, c.dir, "--no-worker")
	s.connect()
	s.noLeases()
	run, err := s.frontier.Run(ctx, "crawl-1")
	s.ok(err)
	if run.State != frontier.RunFinished || run.Counts.Completed != n || run.Counts.Open() != 0 {
		c.t.Errorf("the frontier has %s, %+v", run.State, run.Counts)
	}
	if claims, _, err := s.frontier.OpenClaims(ctx, "crawl-1", "", 100); err != nil || len(claims) != 0 {
		c.t.Errorf("claims are left open: %v, %v", claims, err)
	}
	proxies, err := s.pool.Proxies(ctx)
	s.ok(err)
	for _, x := range proxies {
		if x.State != proxypool.StateActive {
			c.t.Errorf("proxy %s is %s after the kills: %s", x.ID, x.State, x.Reason)
		}
	}
	if code := s.services.stop(30 * time.Second); code != 0 {
		c.t.Errorf("up ends with %d", code)
	}
}

// wantAllCompleted wants n records, all completed.
func wantAllCompleted(t *testing.T, records map[string]crawl.Record, n int) {
	t.Helper()
	if len(records) != n {
		t.Errorf("%d records, want %d", len(records), n)
	}
	for u, r := range records {
		if r.State != crawl.Completed {
			t.Errorf("%s ended as %s %v", u, r.State, r.Reason)
		}
	}
}

// noneRepeated holds the site's log against the records: a request is either an
// attempt of its URL's record, or it was under way when something was killed.
// Pages take took.
func noneRepeated(t *testing.T, visits []lab.Visit, records map[string]crawl.Record, kills []time.Time, took time.Duration) {
	t.Helper()
	const slack = 1500 * time.Millisecond // a crowded machine: commit and request lie apart
	repeats := 0
	attempts := map[string][]crawl.Attempt{}
	for u, r := range records {
		attempts[pathOf(u)] = r.Attempts
	}
	for _, v := range visits {
		if isAttempt(t, v, attempts[v.Path]) {
			continue
		}
		excused := false
		for _, k := range kills {
			excused = excused || !v.At.After(k) && k.Before(v.At.Add(took+slack))
		}
		if !excused {
			t.Errorf("%s was asked at %v (%d), which no attempt in its record and no kill explains: %+v",
				v.Path, v.At.Format(time.StampMilli), v.Status, attempts[v.Path])
		}
		repeats++
	}
	t.Logf("%d requests, of which %d were under way at a kill and made again", len(visits), repeats)
}

// pathOf returns a URL's path and query.
func pathOf(u string) string {
	_, rest, _ := strings.Cut(u, "://")
	return rest[strings.Index(rest, "/"):]
}

// isAttempt tells whether a request is one of its record's attempts.
func isAttempt(t *testing.T, v lab.Visit, attempts []crawl.Attempt) bool {
	t.Helper()
	for _, a := range attempts {
		started, err := time.Parse(time.RFC3339, a.Started)
		if err != nil {
			t.Fatalf("an attempt started at %q", a.Started)
		}
		ended := started.Add(time.Duration(a.TookMS) * time.Millisecond)
		if v.At.After(started.Add(-2*time.Millisecond)) && v.At.Before(ended.Add(2*time.Millisecond)) {
			return true
		}
	}
	return false
}

// TestCtrlCEndsACrawlThatGoesOn: the first Ctrl-C drains and says how to go on.
func TestCtrlCEndsACrawlThatGoesOn(t *testing.T) {
	inFull(t)
	t.Parallel()
	const n = 60
	c := newCrawling(t, n, 4, func(i int) string { return fmt.Sprintf("/slow/%d?ms=200", i) })
	p := c.launch()
	poll(t, 90*time.Second, "some are done", func() bool { return len(c.written()) >= 5 })
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	if code := p.exit(50 * time.Second); code != 130 {
		t.Errorf("exit %d after Ctrl-C, want 130\n%s", code, p.err.String())
	}
	if said := p.err.String(); !strings.Contains(said, "the same command") {
		t.Errorf("it does not say how to go on: %s", said)
	}
	asked := c.asked()
	if asked >= n {
		t.Errorf("it went on to the end")
	}
	var out bytes.Buffer
	p = launch(t, "standalone crawl", &out, bin.standalone, c.args...)
	if code := p.exit(2 * time.Minute); code != 0 {
		t.Fatalf("exit %d\n%s", code, p.err.String())
	}
	records := readRecords(t, c.out(), "crawl", 1)
	wantAllCompleted(t, records, n)
	noneRepeated(t, c.site.Visits(), records, nil, 0)
}

// TestACrawlKilledWhileItStartsCanBeStarted kills the first starts on a new
// directory, each a little later: while it is laid out, while the databases are
// made, the proxies imported and the list loaded.
func TestACrawlKilledWhileItStartsCanBeStarted(t *testing.T) {
	inFull(t)
	t.Parallel()
	const n = 400
	c := newCrawling(t, n, 8, func(i int) string { return fmt.Sprintf("/ok/%d", i) })
	var kills []time.Time
	for _, after := range []time.Duration{
		20, 60, 100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 1000, 1300, 1600,
	} {
		p := c.launch()
		select {
		case <-p.done:
			if code := p.exit(0); code != 0 {
				t.Fatalf("a start after a kill ended with %d: %s", code, p.err.String())
			}
		case <-time.After(after * time.Millisecond):
		}
		p.kill()
		kills = append(kills, time.Now())
	}
	p := c.launch()
	if code := p.exit(3 * time.Minute); code != 0 {
		t.Fatalf("exit %d\n%s", code, p.err.String())
	}
	records := readRecords(t, c.out(), "crawl", 1)
	wantAllCompleted(t, records, n)
	noneRepeated(t, c.site.Visits(), records, kills, 0)
	c.settled(n)
}
