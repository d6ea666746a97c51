package lab

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/internal/crawl"
)

// Expect is a URL and how it has to end.
type Expect struct {
	URL    string
	State  crawl.State
	Reason crawl.Reason
	// Kind groups URLs for a table: "429 with Retry-After", and what it shows.
	Kind string
}

// End is how a URL ended.
type End struct {
	State  crawl.State
	Reason crawl.Reason
}

// DemoOptions configure a Demo.
type DemoOptions struct {
	// Password is what the proxies ask for. Default: random.
	Password string
}

// Demo is the scenario of `standalone demo`: two sites, a set of proxies of which
// some are ill, and a list of URLs with the end that each must come to.
type Demo struct {
	// Site has every page but those that close their host, which Strict has.
	Site, Strict *Site
	// Proxies, in the order of ProxyLines.
	Proxies []*Proxy
	// Expected has every URL once.
	Expected []Expect
}

// NewDemo starts the scenario's servers. Stop them with Close.
func NewDemo(opts DemoOptions) (*Demo, error) {
	if opts.Password == "" {
		opts.Password = rand.Text()
	}
	d := &Demo{}
	err := d.start(opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start demo: %w", err), d.Close())
	}
	d.Expected = d.list()
	return d, nil
}

func (d *Demo) start(opts DemoOptions) (err error) {
	if d.Site, err = NewSite(SiteOptions{}); err != nil {
		return err
	}
	if d.Strict, err = NewSite(SiteOptions{}); err != nil {
		return err
	}
	for _, o := range []ProxyOptions{
		{Name: "good-1"},
		{Name: "good-2"},
		{Name: "good-3", Username: "demo", Password: opts.Password},
		{Name: "good-4", Username: "demo", Password: opts.Password},
		{Name: "socks", SOCKS: true, Username: "demo", Password: opts.Password},
		{Name: "slow", Behaviour: Slow, Delay: 400 * time.Millisecond},
		{Name: "refuses", Behaviour: Refuse},
		{Name: "wrong-password", Username: "demo", Password: rand.Text(), ListPassword: opts.Password},
	} {
		p, err := NewProxy(o)
		if err != nil {
			return err
		}
		d.Proxies = append(d.Proxies, p)
	}
	return nil
}

// list is what is asked: mostly good pages, and each kind of trouble.
func (d *Demo) list() []Expect {
	var out []Expect
	add := func(s *Site, kind string, state crawl.State, reason crawl.Reason, paths ...string) {
		for _, p := range paths {
			out = append(out, Expect{URL: s.URL(p), State: state, Reason: reason, Kind: kind})
		}
	}
	for i := range 26 {
		add(d.Site, "200", crawl.Completed, "", fmt.Sprintf("/ok/%d", i))
	}
	add(d.Site, "200, gzip", crawl.Completed, "", "/gzip/1", "/gzip/2")
	add(d.Site, "404", crawl.Failed, crawl.HTTPReason(404), "/missing/1", "/missing/2", "/missing/3")
	add(d.Site, "403", crawl.Failed, crawl.ReasonBlocked, "/forbidden/1", "/forbidden/2")
	add(d.Site, "503 twice, then 200", crawl.Completed, "", "/flaky/1", "/flaky/2", "/flaky/3")
	add(d.Site, "redirect chain of 3", crawl.Completed, "", "/redirect/101", "/redirect/102", "/redirect/103")
	add(d.Site, "truncated once, then whole", crawl.Completed, "", "/truncated/1", "/truncated/2")
	add(d.Site, "truncated for ever", crawl.Failed, crawl.ReasonRetriesExhausted, "/truncated/3?times=forever")
	add(d.Site, "body over the cap", crawl.Failed, crawl.ReasonTooLarge, "/oversize/1", "/oversize/2")
	add(d.Strict, "429 with Retry-After, then 200", crawl.Completed, "", "/throttled/1?after=2", "/throttled/2?after=3")
	add(d.Strict, "200 on the host that said 429", crawl.Completed, "", "/ok/201", "/ok/202", "/ok/203", "/ok/204")
	return out
}

// Spec returns a campaign that brings the list to its ends within a minute:
// short backoff, four attempts (one more than the flaky pages need), bodies of
// at most 1 MiB.
func (d *Demo) Spec() crawl.Spec {
	s := crawl.DefaultSpec()
	s.Name = "demo"
	s.AllowPrivate = true
	s.Concurrency = 32
	s.Politeness.Delay = 20 * time.Millisecond
	s.Politeness.PerHost = 8
	s.Retry = crawl.Policy{MaxAttempts: 4, BackoffBase: 200 * time.Millisecond, BackoffCap: time.Second}
	s.Fetch.Timeout = 10 * time.Second
	s.Fetch.MaxBody = 1 << 20
	return s
}

// URLs returns the list, in a fixed order that mixes the kinds.
func (d *Demo) URLs() []string {
	out := make([]string, 0, len(d.Expected))
	for _, e := range d.Expected {
		out = append(out, e.URL)
	}
	slices.SortStableFunc(out, func(a, b string) int {
		x, y := mixKey(a), mixKey(b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return out
}

// mixKey orders by path only: ports differ between runs.
func mixKey(raw string) uint64 {
	if u, err := url.Parse(raw); err == nil {
		return hash64(u.RequestURI())
	}
	return 0
}

// ProxyLines returns the proxies file, one line a proxy, with credentials.
func (d *Demo) ProxyLines() string {
	var b strings.Builder
	for _, p := range d.Proxies {
		b.WriteString(p.ListLine() + "\n")
	}
	return b.String()
}

// Check compares how each URL ended with how it had to. The error has a line for
// each that differs, is missing or was never asked for.
func (d *Demo) Check(got map[string]End) error {
	var errs []error
	expected := make(map[string]bool, len(d.Expected))
	for _, e := range d.Expected {
		expected[e.URL] = true
		end, ok := got[e.URL]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%s (%s): no record", e.URL, e.Kind))
		case end != End{State: e.State, Reason: e.Reason}:
			errs = append(errs, fmt.Errorf("%s (%s): %s, expected %s", e.URL, e.Kind, end, End{State: e.State, Reason: e.Reason}))
		}
	}
	for u := range got {
		if !expected[u] {
			errs = append(errs, fmt.Errorf("%s: was never asked for", u))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// String returns "completed" or "failed http_404".
func (e End) String() string { return strings.TrimSpace(string(e.State) + " " + string(e.Reason)) }

// Close stops all servers.
func (d *Demo) Close() error {
	var errs []error
	for _, s := range []*Site{d.Site, d.Strict} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	for _, p := range d.Proxies {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
