package results

import (
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
)

// The campaign file as people write it: the same words and nesting, every value
// spelled out, so that the file says how the run really went.
type campaignFile struct {
	Version     int            `yaml:"version"`
	Name        string         `yaml:"name"`
	Identity    identityFile   `yaml:"identity"`
	Politeness  politenessFile `yaml:"politeness"`
	Concurrency int            `yaml:"concurrency"`
	Proxies     proxiesFile    `yaml:"proxies"`
	Retry       retryFile      `yaml:"retry"`
	Fetch       fetchFile      `yaml:"fetch"`
	Results     resultsFile    `yaml:"results"`
}

type identityFile struct {
	Contact   string `yaml:"contact,omitempty"`
	UserAgent string `yaml:"user_agent"`
}

type politenessFile struct {
	Robots        string `yaml:"robots"`
	Delay         string `yaml:"delay"`
	PerHost       int    `yaml:"per_host"`
	CrawlDelayMax string `yaml:"crawl_delay_max"`
}

type proxiesFile struct {
	Use     string   `yaml:"use"`
	Tags    []string `yaml:"tags,omitempty"`
	Region  string   `yaml:"region,omitempty"`
	MaxTier int      `yaml:"max_tier"`
	Session string   `yaml:"session,omitempty"`
	MaxWait string   `yaml:"max_wait"`
}

type backoffFile struct {
	Base string `yaml:"base"`
	Cap  string `yaml:"cap"`
}

type retryFile struct {
	MaxAttempts    int         `yaml:"max_attempts"`
	MaxProxyFaults int         `yaml:"max_proxy_faults"`
	MaxThrottled   int         `yaml:"max_throttled"`
	Backoff        backoffFile `yaml:"backoff"`
	MaxRetryAfter  string      `yaml:"max_retry_after"`
	MaxWait        string      `yaml:"max_wait"`
	RetryBlocked   int         `yaml:"retry_blocked"`
	UnsafeMethods  bool        `yaml:"unsafe_methods"`
}

type fetchFile struct {
	Method       string            `yaml:"method"`
	Headers      map[string]string `yaml:"headers,omitempty"`
	Timeout      string            `yaml:"timeout"`
	MaxBody      string            `yaml:"max_body"`
	MaxRedirects int               `yaml:"max_redirects"`
	Queue        string            `yaml:"queue,omitempty"`
}

type resultsFile struct {
	Bodies  string   `yaml:"bodies"`
	Headers []string `yaml:"headers"`
}

// campaignYAML renders a run's campaign.
func campaignYAML(m RunMeta) ([]byte, error) {
	s := m.Spec.WithDefaults()
	r := s.Retry.WithDefaults()
	use := "pool"
	if s.Proxies.Direct {
		use = "direct"
	}
	method := s.Fetch.Method
	if method == "" {
		method = "GET"
	}
	return yaml.Marshal(campaignFile{
		Version:  1,
		Name:     m.Campaign,
		Identity: identityFile{Contact: s.Contact, UserAgent: s.UserAgent},
		Politeness: politenessFile{
			Robots: s.Politeness.Robots, Delay: span(s.Politeness.Delay),
			PerHost: s.Politeness.PerHost, CrawlDelayMax: span(s.Politeness.CrawlDelayMax),
		},
		Concurrency: s.Concurrency,
		Proxies: proxiesFile{
			Use: use, Tags: s.Proxies.Tags, Region: s.Proxies.Region,
			MaxTier: s.Proxies.MaxTier, Session: s.Proxies.Session, MaxWait: span(r.MaxProxyWait),
		},
		Retry: retryFile{
			MaxAttempts: r.MaxAttempts, MaxProxyFaults: r.MaxProxyFaults, MaxThrottled: r.MaxThrottled,
			Backoff:       backoffFile{Base: span(r.BackoffBase), Cap: span(r.BackoffCap)},
			MaxRetryAfter: span(r.MaxRetryAfter), MaxWait: span(r.MaxWait),
			RetryBlocked: r.RetryBlocked, UnsafeMethods: r.UnsafeMethods,
		},
		Fetch: fetchFile{
			Method: method, Headers: s.Fetch.Headers, Timeout: span(s.Fetch.Timeout),
			MaxBody: size(s.Fetch.MaxBody), MaxRedirects: s.Fetch.MaxRedirects, Queue: s.Fetch.Queue,
		},
		Results: resultsFile{Bodies: s.Results.Bodies, Headers: s.Results.Headers},
	})
}

// span writes a duration in the one unit that fits: "90s", "24h", "1500ms".
func span(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d%u.unit == 0 && (d >= u.unit || d == 0 && u.unit == time.Second) {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return d.String()
}

// size writes bytes in the largest unit that fits without a fraction.
func size(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n > 0 && n&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
