package crawl

import "time"

// Policy says what is retried, how often and after how long. A zero field means
// its default, so that a task's history holds only what a campaign changed; the
// defaults belong to the task's Behaviour.
type Policy struct {
	// MaxAttempts caps the target's answers and ambiguous faults. Default 5.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// MaxProxyFaults caps the proxies' faults, which never spend attempts. Default 10.
	MaxProxyFaults int `json:"max_proxy_faults,omitempty"`
	// MaxThrottled caps the answers 429 and 503 that carry a Retry-After. Default 20.
	MaxThrottled int `json:"max_throttled,omitempty"`
	// BackoffBase and BackoffCap bound our own backoff. Defaults 1 s and 60 s.
	BackoffBase time.Duration `json:"backoff_base,omitempty"`
	BackoffCap  time.Duration `json:"backoff_cap,omitempty"`
	// MaxRetryAfter is the longest Retry-After that is waited for. Default 24 h.
	MaxRetryAfter time.Duration `json:"max_retry_after,omitempty"`
	// MaxWait caps the sum of all waits. Default 168 h.
	MaxWait time.Duration `json:"max_wait,omitempty"`
	// MaxProxyWait is how long a URL waits for a proxy at a stretch. Default 1 h.
	MaxProxyWait time.Duration `json:"max_proxy_wait,omitempty"`
	// MaxRobotsWait is how long a URL waits for a robots.txt that cannot be reached.
	// Default 1 h.
	MaxRobotsWait time.Duration `json:"max_robots_wait,omitempty"`
	// RetryBlocked allows this many further proxies after a block. Default 0.
	RetryBlocked int `json:"retry_blocked,omitempty"`
	// UnsafeMethods repeats POST and PATCH after ambiguous faults too. Default false.
	UnsafeMethods bool `json:"unsafe_methods,omitempty"`
}

// WithDefaults returns p with every zero field replaced by its default.
func (p Policy) WithDefaults() Policy {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	dur := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&p.MaxAttempts, 5)
	def(&p.MaxProxyFaults, 10)
	def(&p.MaxThrottled, 20)
	dur(&p.BackoffBase, time.Second)
	dur(&p.BackoffCap, time.Minute)
	dur(&p.MaxRetryAfter, 24*time.Hour)
	dur(&p.MaxWait, 168*time.Hour)
	dur(&p.MaxProxyWait, time.Hour)
	dur(&p.MaxRobotsWait, time.Hour)
	return p
}
