package cli

import (
	"net/mail"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/proxypool"
)

// specFlags are the flags from which a campaign's spec is built.
type specFlags struct {
	delay        time.Duration
	perHost      int
	concurrency  int
	maxAttempts  int
	maxWait      time.Duration
	timeout      time.Duration
	maxRedirects int
	robots       string
	direct       bool
	tags         []string
	region       string
	maxTier      int
	session      string
	allowPrivate bool
}

func (s *specFlags) register(cmd *cobra.Command) {
	d := crawl.DefaultSpec()
	fs := cmd.Flags()
	fs.DurationVar(&s.delay, "delay", d.Politeness.Delay, "time between two requests to a host, over all workers; 0 for none")
	fs.IntVar(&s.perHost, "per-host", d.Politeness.PerHost, "requests in flight at a host")
	fs.IntVar(&s.concurrency, "concurrency", d.Concurrency, "URLs in flight over all workers")
	fs.IntVar(&s.maxAttempts, "max-attempts", crawl.Policy{}.WithDefaults().MaxAttempts, "answers and doubtful faults after which a URL fails")
	fs.DurationVar(&s.maxWait, "max-wait", crawl.Policy{}.WithDefaults().MaxWait, "longest sum of a URL's waits")
	fs.DurationVar(&s.timeout, "timeout", crawl.DefaultTimeout, "whole time of one exchange, redirects and body included")
	fs.IntVar(&s.maxRedirects, "max-redirects", crawl.DefaultMaxRedirects, "redirects that are followed")
	fs.StringVar(&s.robots, "robots", d.Politeness.Robots, "obey or ignore robots.txt")
	fs.BoolVar(&s.direct, "direct", false, "ask from the workers' own address, without proxies")
	fs.StringArrayVar(&s.tags, "tag", nil, "use proxies with this tag only (repeatable)")
	fs.StringVar(&s.region, "region", "", "use proxies of this region only")
	fs.IntVar(&s.maxTier, "max-tier", 0, "dearest cost tier of proxies to use, 0 to 9; cheaper ones come first")
	fs.StringVar(&s.session, "session", "", "host: ask each host through one proxy while it lasts")
	fs.BoolVar(&s.allowPrivate, "allow-private", false, "let targets be loopback and private addresses (set by itself where every URL is on loopback)")
}

// spec checks the flags and builds the campaign's spec, complete but for what
// its URLs decide (AllowPrivate). 0 is refused where it could mean "none" and
// "no limit" alike.
func (s *specFlags) spec(cmd *cobra.Command, name, contact string) (crawl.Spec, error) {
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"per-host", int64(s.perHost)},
		{"concurrency", int64(s.concurrency)},
		{"max-attempts", int64(s.maxAttempts)},
		{"max-wait", int64(s.maxWait)},
		{"timeout", int64(s.timeout)},
		{"max-redirects", int64(s.maxRedirects)},
	} {
		if n.value <= 0 {
			return crawl.Spec{}, usage("leave the flag out for the default", "--%s is %s; it must be more than 0", n.flag, cmd.Flag(n.flag).Value)
		}
	}
	switch {
	case s.delay < 0:
		return crawl.Spec{}, usage(helpHint(cmd), "--delay is %s; it cannot be negative", s.delay)
	case s.robots != "obey" && s.robots != "ignore":
		return crawl.Spec{}, usage(helpHint(cmd), "--robots is %q; it can be obey or ignore", s.robots)
	case s.maxTier < 0 || s.maxTier > proxypool.MaxTier:
		return crawl.Spec{}, usage(helpHint(cmd), "--max-tier is %d; it can be 0 to %d", s.maxTier, proxypool.MaxTier)
	case s.session != "" && s.session != "host":
		return crawl.Spec{}, usage(helpHint(cmd), "--session is %q; it can be host", s.session)
	case s.direct && (s.maxTier > 0 || s.session != ""):
		return crawl.Spec{}, usage(helpHint(cmd), "--direct uses no proxy, --max-tier and --session choose some; give one of the two")
	case s.direct && (len(s.tags) > 0 || s.region != ""):
		return crawl.Spec{}, usage(helpHint(cmd), "--direct uses no proxy, --tag and --region choose some; give one of the two")
	}
	if err := checkContact(contact); err != nil {
		return crawl.Spec{}, err
	}
	spec := crawl.DefaultSpec()
	spec.Name, spec.Contact = name, contact
	spec.Politeness.Delay, spec.Politeness.PerHost, spec.Politeness.Robots = s.delay, s.perHost, s.robots
	spec.Concurrency = s.concurrency
	spec.Proxies = crawl.ProxySpec{Direct: s.direct, Tags: s.tags, Region: s.region, MaxTier: s.maxTier, Session: s.session}
	// The policy of a task holds only what a campaign changed.
	if d := (crawl.Policy{}).WithDefaults(); s.maxAttempts != d.MaxAttempts {
		spec.Retry.MaxAttempts = s.maxAttempts
	}
	if d := (crawl.Policy{}).WithDefaults(); s.maxWait != d.MaxWait {
		spec.Retry.MaxWait = s.maxWait
	}
	spec.Fetch.Timeout, spec.Fetch.MaxRedirects = s.timeout, s.maxRedirects
	spec.AllowPrivate = s.allowPrivate
	return spec, nil
}

// contact is the flag's value or the environment's.
func (a *App) contact() string { return or(a.opts.contact, a.env.getenv("HOLDFAST_CONTACT")) }

// checkContact takes an http(s) URL, a mail address, or nothing.
func checkContact(contact string) error {
	const hint = "give a URL or mail address that reaches you: --contact https://example.org/bot"
	if contact == "" {
		return nil
	}
	if strings.ContainsAny(contact, "()\r\n\t ") {
		return usage(hint, "--contact may hold no blanks and no brackets")
	}
	if u, err := url.Parse(contact); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	if m, err := mail.ParseAddress(contact); err == nil && m.Address == contact {
		return nil
	}
	return usage(hint, "--contact is neither a URL nor a mail address")
}

// needContact refuses a campaign that would ask somebody else's site without
// saying who asks.
func (a *App) needContact(spec crawl.Spec, outside string) error {
	if outside == "" || spec.Contact != "" {
		return nil
	}
	return refused("no_contact",
		"give a URL or mail address that reaches you: --contact https://example.org/bot, or set HOLDFAST_CONTACT",
		"%s is not on loopback, and sites must be able to reach whoever asks them", oneLine(outside))
}

// onLoopback reports whether a slot's key (host:port) is on this machine.
func onLoopback(hostPort string) bool {
	host, _, ok := strings.Cut(hostPort, "]:")
	host = strings.TrimPrefix(host, "[")
	if !ok {
		host = hostPort
		if i := strings.LastIndexByte(hostPort, ':'); i >= 0 {
			host = hostPort[:i]
		}
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkName refuses a campaign's name that the frontier would refuse.
func checkName(name string) error {
	if name == "" {
		return usage("give --name NAME", "the campaign has no name")
	}
	if frontier.CheckName(name) != nil {
		return usage("use up to 64 of a-z 0-9 . _ - and start with a letter or digit: docs", "%q is not a campaign's name", name)
	}
	return nil
}
