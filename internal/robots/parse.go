package robots

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxBytes is how much of a robots.txt is read; what lies beyond is ignored
// (RFC 9309 §2.5 asks for at least 500 KiB).
const MaxBytes = 500 << 10

// maxDelay is what an absurd Crawl-delay is cut to.
const maxDelay = 365 * 24 * time.Hour

// Rules is a parsed robots.txt. The zero value allows everything.
type Rules struct{ groups []group }

// group is one or more user-agent lines and the rules that follow them.
type group struct {
	agents []agent
	rules  []rule
}

type agent struct {
	// token is a lower-case product token, or "*".
	token string
	delay time.Duration
	paced bool
}

// Parse reads a robots.txt. It never fails: lines that make no sense are skipped
// (RFC 9309 §2.2), so that a page of HTML allows everything.
func Parse(body []byte) *Rules {
	body = withoutMark(body)
	if len(body) > MaxBytes {
		body = body[:MaxBytes]
		// The last line is cut: half a rule would say something else.
		body = body[:bytes.LastIndexAny(body, "\r\n")+1]
	}
	p := parser{}
	for len(body) > 0 {
		line := body
		if i := bytes.IndexAny(body, "\r\n"); i >= 0 {
			line, body = body[:i], body[i+1:]
		} else {
			body = nil
		}
		p.line(string(line))
	}
	return &Rules{groups: p.groups}
}

// withoutMark strips a byte order mark, also one that lost its end.
func withoutMark(b []byte) []byte {
	for _, c := range []byte{0xef, 0xbb, 0xbf} {
		if len(b) == 0 || b[0] != c {
			break
		}
		b = b[1:]
	}
	return b
}

type parser struct {
	groups []group
	// ruled says that the current group has a rule, so that the next user-agent
	// line starts another.
	ruled bool
}

func (p *parser) line(line string) {
	line, _, _ = strings.Cut(line, "#")
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		// "Disallow /x": a colon is often forgotten, and one token is a value then.
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return
		}
		key, value = fields[0], fields[1]
	}
	value = strings.TrimSpace(value)
	switch strings.ToLower(strings.TrimSpace(key)) {
	case "user-agent", "useragent", "user agent":
		p.agent(value)
	case "allow":
		p.rule(value, true)
	case "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		p.rule(value, false)
	case "crawl-delay", "crawldelay", "crawl delay":
		p.delay(value)
	}
}

func (p *parser) agent(value string) {
	if len(p.groups) == 0 || p.ruled {
		p.groups = append(p.groups, group{})
		p.ruled = false
	}
	g := &p.groups[len(p.groups)-1]
	token := ProductToken(value)
	if value == "*" || strings.HasPrefix(value, "* ") || strings.HasPrefix(value, "*\t") {
		token = "*"
	}
	g.agents = append(g.agents, agent{token: token})
}

// rule adds a rule to the current group; one before any user-agent line belongs
// to nobody. An empty path is no rule but ends the list of agents.
func (p *parser) rule(path string, allow bool) {
	if len(p.groups) == 0 {
		return
	}
	p.ruled = true
	if pattern := normalise(path, true); pattern != "" {
		g := &p.groups[len(p.groups)-1]
		g.rules = append(g.rules, rule{pattern: pattern, allow: allow})
	}
}

// delay belongs to the user-agent lines above it. It does not end their list: a
// record that the RFC does not define must not change its groups (§2.2.4).
func (p *parser) delay(value string) {
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 || len(p.groups) == 0 {
		return
	}
	d := maxDelay
	if seconds < maxDelay.Seconds() {
		d = time.Duration(math.Ceil(seconds*1000)) * time.Millisecond
	}
	agents := p.groups[len(p.groups)-1].agents
	for i := range agents {
		agents[i].delay, agents[i].paced = max(d, agents[i].delay), true
	}
}

// ProductToken returns the token by which a crawler is named in robots.txt, lower
// case: the leading letters, "-" and "_" of its User-Agent (RFC 9309 §2.2.1).
func ProductToken(userAgent string) string {
	end := strings.IndexFunc(userAgent, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	})
	if end >= 0 {
		userAgent = userAgent[:end]
	}
	return strings.ToLower(userAgent)
}

// For returns what the file says to one crawler: the groups that name its product
// token taken together, or those for "*" if none does (RFC 9309 §2.2.1).
func (r *Rules) For(userAgent string) *Ruleset {
	token := ProductToken(userAgent)
	if token != "" {
		if s, named := r.collect(token); named {
			return s
		}
	}
	s, _ := r.collect("*")
	return s
}

func (r *Rules) collect(token string) (*Ruleset, bool) {
	s, named := &Ruleset{}, false
	for _, g := range r.groups {
		in := false
		for _, a := range g.agents {
			if a.token != token {
				continue
			}
			in = true
			if a.paced {
				s.delay, s.paced = max(s.delay, a.delay), true
			}
		}
		if in {
			named = true
			s.rules = append(s.rules, g.rules...)
		}
	}
	return s, named
}

// Allowed reports whether the crawler may ask for a path with its query.
func (r *Rules) Allowed(userAgent, pathAndQuery string) bool {
	return r.For(userAgent).Allowed(pathAndQuery)
}

// CrawlDelay returns the crawl-delay for the crawler, false if there is none.
func (r *Rules) CrawlDelay(userAgent string) (time.Duration, bool) {
	return r.For(userAgent).CrawlDelay()
}
