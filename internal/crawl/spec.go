package crawl

import "time"

// Spec is a campaign as its run uses it: the checked form of campaign.yaml and
// of the flags, every default filled in. It is stored with the run's frontier;
// workers read it there and keep it for a second.
type Spec struct {
	Name string `json:"name"`
	// Contact is a URL or mail address; required for targets off loopback.
	Contact string `json:"contact,omitempty"`
	// UserAgent is the product token; its first token is the robots group.
	UserAgent  string     `json:"user_agent"`
	Politeness Politeness `json:"politeness"`
	// Concurrency bounds the URLs in flight over all workers. Default 256.
	Concurrency int        `json:"concurrency"`
	Proxies     ProxySpec  `json:"proxies"`
	Retry       Policy     `json:"retry"`
	Fetch       FetchSpec  `json:"fetch"`
	Results     ResultSpec `json:"results"`
	// AllowPrivate lets targets resolve to loopback and private addresses. It is
	// set by the starter when every seed is on loopback or the user asked for it.
	AllowPrivate bool `json:"allow_private,omitempty"`
}

// Politeness says how often a host may be asked.
type Politeness struct {
	// Robots is "obey" (default) or "ignore".
	Robots string `json:"robots"`
	// Delay is the interval between two requests to a host, over all workers. Default 1 s; 0: none.
	Delay time.Duration `json:"delay"`
	// PerHost is the number of requests in flight at a host. Default 2.
	PerHost int `json:"per_host"`
	// CrawlDelayMax is the longest crawl-delay that is obeyed by waiting. Default 60 s.
	CrawlDelayMax time.Duration `json:"crawl_delay_max"`
}

// ProxySpec selects proxies.
type ProxySpec struct {
	// Direct asks from the worker's own address.
	Direct bool     `json:"direct,omitempty"`
	Tags   []string `json:"tags,omitempty"`
	Region string   `json:"region,omitempty"`
	// MaxTier is the dearest cost tier to use, 0 to 9. Default 0: the cheapest.
	MaxTier int `json:"max_tier,omitempty"`
	// Session is "" or "host": a host's URLs keep to one proxy while it lasts.
	Session string `json:"session,omitempty"`
}

// FetchSpec bounds one exchange. Zero fields mean their defaults.
type FetchSpec struct {
	Method       string            `json:"method,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Timeout      time.Duration     `json:"timeout,omitempty"`
	MaxBody      int64             `json:"max_body,omitempty"`
	MaxRedirects int               `json:"max_redirects,omitempty"`
	Queue        string            `json:"queue,omitempty"`
}

// ResultSpec says what is kept of a page.
type ResultSpec struct {
	// Bodies is "files" (default) or "none".
	Bodies string `json:"bodies"`
	// Headers is the allow-list; Set-Cookie and Authorization are never kept.
	Headers []string `json:"headers"`
}

// WithDefaults returns s with every field left out set to its default. Delay has
// no zero to mean "default": whoever builds a Spec starts from DefaultSpec.
func (s Spec) WithDefaults() Spec {
	d := DefaultSpec()
	if s.UserAgent == "" {
		s.UserAgent = d.UserAgent
	}
	if s.Politeness.Robots == "" {
		s.Politeness.Robots = d.Politeness.Robots
	}
	if s.Politeness.PerHost == 0 {
		s.Politeness.PerHost = d.Politeness.PerHost
	}
	if s.Politeness.CrawlDelayMax == 0 {
		s.Politeness.CrawlDelayMax = d.Politeness.CrawlDelayMax
	}
	if s.Concurrency == 0 {
		s.Concurrency = d.Concurrency
	}
	if s.Results.Bodies == "" {
		s.Results.Bodies = d.Results.Bodies
	}
	if s.Results.Headers == nil {
		s.Results.Headers = d.Results.Headers
	}
	if s.Fetch.Timeout == 0 {
		s.Fetch.Timeout = DefaultTimeout
	}
	if s.Fetch.MaxBody == 0 {
		s.Fetch.MaxBody = DefaultMaxBody
	}
	if s.Fetch.MaxRedirects == 0 {
		s.Fetch.MaxRedirects = DefaultMaxRedirects
	}
	return s
}

// DefaultSpec returns a campaign with nothing chosen.
func DefaultSpec() Spec {
	return Spec{
		UserAgent:   DefaultUserAgent,
		Politeness:  Politeness{Robots: "obey", Delay: time.Second, PerHost: 2, CrawlDelayMax: time.Minute},
		Concurrency: 256,
		Fetch:       FetchSpec{Timeout: DefaultTimeout, MaxBody: DefaultMaxBody, MaxRedirects: DefaultMaxRedirects},
		Results: ResultSpec{
			Bodies:  "files",
			Headers: []string{"content-type", "etag", "last-modified", "retry-after", "server"},
		},
	}
}
