package crawl

import "time"

// Class says what happened in one pass, coarsely: it decides who pays for it
// (the URL, the proxy, nobody) and whether the URL is asked again.
type Class string

// The classes of an exchange that took place.
const (
	// OK: a valid page, or 304.
	OK Class = "ok"
	// TargetTransient: the target said try again: 408 425 429 500 502 503 504 520-524.
	TargetTransient Class = "target_transient"
	// TargetPermanent: the target said no: other 4xx, 3xx without Location, 501, 505 ….
	TargetPermanent Class = "target_permanent"
	// Blocked: 403, or a page that a validity rule refuses.
	Blocked Class = "blocked"
	// ProxyAuth: the proxy wants other credentials (407, SOCKS auth failure).
	ProxyAuth Class = "proxy_auth"
	// ProxyFault: no tunnel stands and the proxy is at fault.
	ProxyFault Class = "proxy_fault"
	// Ambiguous: reset, timed out or broken after the tunnel stood: proxy or target.
	Ambiguous Class = "ambiguous"
	// Permanent: asking again cannot help: no such host, address or scheme not allowed.
	Permanent Class = "permanent"
	// TooLarge: a cap of the fetch was hit.
	TooLarge Class = "too_large"
)

// The classes of a pass in which no exchange ended.
const (
	// Deferred: not now; Wait and Why say until when and for what.
	Deferred Class = "deferred"
	// Canceled: the campaign or the run was canceled before the exchange ended.
	Canceled Class = "canceled"
	// HandedOn: the worker stopped; another one goes on. Spends nothing.
	HandedOn Class = "handed_on"
	// Ended: the lease was already ended without an outcome (reaped, released
	// by a compensation). The next pass takes the next lease id.
	Ended Class = "ended"
	// RobotsDenied: robots.txt disallows the URL, or asks for a longer crawl-delay
	// than the campaign waits for.
	RobotsDenied Class = "robots_denied"
)

// Reason is one word of the closed vocabulary of what went wrong. It is the
// type of the workflow's failure, the `reason` of the record and the group of
// `failures list`; it never holds a URL, an address or a message of somebody else.
type Reason string

// Reasons for which a URL ends as failed. HTTPReason gives "http_404" and its like.
const (
	ReasonBlocked            Reason = "blocked"
	ReasonRobotsDenied       Reason = "robots_denied"
	ReasonRetriesExhausted   Reason = "retries_exhausted"
	ReasonProxyFaults        Reason = "proxy_faults_exhausted"
	ReasonThrottled          Reason = "throttled"
	ReasonMaxWait            Reason = "max_wait_exceeded"
	ReasonRetryAfterTooLong  Reason = "retry_after_too_long"
	ReasonProxyAuth          Reason = "proxy_auth"
	ReasonNoProxy            Reason = "no_proxy"
	ReasonTooLarge           Reason = "too_large"
	ReasonTooManyRedirects   Reason = "too_many_redirects"
	ReasonRedirectLoop       Reason = "redirect_loop"
	ReasonRedirectOutOfScope Reason = "redirect_out_of_scope"
	ReasonBadRedirect        Reason = "bad_redirect"
	ReasonNoSuchHost         Reason = "no_such_host"
	ReasonInvalidURL         Reason = "invalid_url"
	ReasonSchemeNotAllowed   Reason = "scheme_not_allowed"
	ReasonAddressNotAllowed  Reason = "address_not_allowed"
	ReasonAmbiguousUnsafe    Reason = "ambiguous_unsafe"
	ReasonLost               Reason = "lost"
	ReasonTerminated         Reason = "terminated"
	ReasonTimedOut           Reason = "timed_out"
	ReasonSkippedCanceled    Reason = "campaign_canceled"
	ReasonRobotsUnreachable  Reason = "robots_unreachable"
	ReasonCrawlDelayTooLong  Reason = "crawl_delay_too_long"
)

// Reasons that describe an attempt which is not (yet) the URL's end.
const (
	ReasonConnectRefused Reason = "connect_refused"
	ReasonConnectTimeout Reason = "connect_timeout"
	ReasonConnectReset   Reason = "connect_reset"
	ReasonDNS            Reason = "dns" // no usable answer; a name that does not exist is no_such_host
	ReasonProxyStatus    Reason = "proxy_5xx"
	ReasonProxyProtocol  Reason = "proxy_protocol"
	ReasonTimeout        Reason = "timeout"
	ReasonReset          Reason = "reset"
	ReasonTLS            Reason = "tls"
	ReasonTruncated      Reason = "truncated"
	ReasonBadEncoding    Reason = "bad_encoding"
	ReasonProtocol       Reason = "protocol"
	ReasonTooSlow        Reason = "too_slow"
	ReasonStore          Reason = "store"
	ReasonStale          Reason = "stale_lease"
)

// WaitReason says what a pass waits for.
type WaitReason string

// What a URL can wait for.
const (
	WaitHostTurn   WaitReason = "host_turn"    // the host's interval
	WaitHostBusy   WaitReason = "host_busy"    // the host's concurrency
	WaitNotBefore  WaitReason = "retry_after"  // the host's Retry-After
	WaitProxyBusy  WaitReason = "proxies_busy" // eligible proxies exist, all in use, resting or cooling
	WaitNoProxy    WaitReason = "no_proxy"     // no eligible proxy at all
	WaitRobots     WaitReason = "robots"       // another pass reads robots.txt, or it is unreachable
	WaitRedirect   WaitReason = "redirect"     // the turn of a redirect's host
	WaitPaused     WaitReason = "paused"       // the campaign is paused
	WaitBackoff    WaitReason = "backoff"      // our own backoff
	WaitRedis      WaitReason = "redis_unavailable"
	WaitStore      WaitReason = "results_unavailable"
	WaitSuperseded WaitReason = "superseded" // another execution of this pass took over
	WaitGeneration WaitReason = "generation" // the pool's Redis lost grants; closed for one TTL
)

// Outcome is what one execution of Fetch has to tell the workflow. It goes into
// history, so it holds ids, sizes, hashes and words of closed vocabularies only.
// Committed under the lease id it is also the tombstone that a repeated Fetch answers from.
type Outcome struct {
	Class  Class  `json:"class"`
	Reason Reason `json:"reason,omitempty"`
	// Rule names the validity rule behind Blocked.
	Rule   string `json:"rule,omitempty"`
	Status int    `json:"status,omitempty"`
	// Proxy is the proxy's id; empty: direct, or none was leased.
	Proxy  string `json:"proxy,omitempty"`
	Region string `json:"region,omitempty"`
	Worker string `json:"worker,omitempty"`
	// StartedMS is Unix milliseconds, TookMS the exchange's whole time.
	StartedMS int64 `json:"started,omitempty"`
	TookMS    int64 `json:"took,omitempty"`
	// ConnectMS is the time until the tunnel stood; what the pool learns latency from.
	ConnectMS int64 `json:"connect,omitempty"`
	// Requests counts the requests sent to a target, redirects included.
	Requests int `json:"reqs,omitempty"`
	// RetryAfterMS is what the target's Retry-After asks for, from now; 0: none.
	RetryAfterMS int64 `json:"retry_after,omitempty"`
	// WaitMS and Why belong to Deferred.
	WaitMS int64      `json:"wait,omitempty"`
	Why    WaitReason `json:"why,omitempty"`
	// NextURL and Hops: where a deferred redirect goes on in the next pass.
	NextURL string `json:"next,omitempty"`
	Hops    int    `json:"hops,omitempty"`
	// NextMethod is the method to go on with, where redirects changed it (RFC 9110
	// §15.4: POST to GET); the request then has no body any more.
	NextMethod string `json:"next_method,omitempty"`
	// Bytes is the decoded body's size, WireBytes what was read, SHA256 the
	// decoded body's digest in hex.
	Bytes     int64  `json:"bytes,omitempty"`
	WireBytes int64  `json:"wire,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	// Held says that the pass had its lease when it ended, so that there is one
	// to release.
	Held bool `json:"held,omitempty"`
}

// RetryAfter returns the target's Retry-After, 0 for none.
func (o Outcome) RetryAfter() time.Duration { return time.Duration(o.RetryAfterMS) * time.Millisecond }

// Wait returns how long a Deferred pass asks to wait.
func (o Outcome) Wait() time.Duration { return time.Duration(o.WaitMS) * time.Millisecond }

// Exchanged reports whether an exchange took place, well or badly: whether the
// pass is an attempt that belongs into the record.
func (o Outcome) Exchanged() bool {
	switch o.Class {
	case Deferred, Canceled, HandedOn, Ended, RobotsDenied:
		return false
	}
	return true
}

// HTTPReason returns the reason for a final HTTP status: "http_404".
func HTTPReason(status int) Reason { return Reason("http_" + itoa3(status)) }

func itoa3(n int) string {
	if n < 100 || n > 999 {
		return "000"
	}
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

// Attempt is one line of a record's `attempts`: an exchange and what followed it.
type Attempt struct {
	N       int    `json:"n"`
	Worker  string `json:"worker"`
	Proxy   string `json:"proxy,omitempty"`
	Region  string `json:"region,omitempty"`
	Class   Class  `json:"class"`
	Reason  Reason `json:"reason,omitempty"`
	Status  int    `json:"status,omitempty"`
	Started string `json:"started"`
	TookMS  int64  `json:"took_ms"`
	// ThenWaitMS is how long the URL waited afterwards, and Why says why.
	ThenWaitMS int64  `json:"then_wait_ms,omitempty"`
	Why        string `json:"why,omitempty"`
}

// ProxyVerdict is what one pass says about its proxy.
type ProxyVerdict string

// The verdicts on a proxy.
const (
	ProxySuccess ProxyVerdict = "success" // it carried an answer
	ProxyFailure ProxyVerdict = "failure" // it is at fault
	ProxyNeutral ProxyVerdict = "neutral" // nothing learnt
	ProxyUnclear ProxyVerdict = "unclear" // proxy or target: the pool weighs its evidence
	ProxyDenied  ProxyVerdict = "denied"  // wrong credentials: quarantine
)

// PairVerdict is what one pass says about its proxy at this host.
type PairVerdict string

// The verdicts on a (proxy, host) pair.
const (
	PairNone      PairVerdict = ""
	PairPassed    PairVerdict = "passed"
	PairThrottled PairVerdict = "throttled" // 429
	PairBlocked   PairVerdict = "blocked"   // 403 or a soft block
)

// Verdict is the health sample that a release carries to the pool.
type Verdict struct {
	Proxy     ProxyVerdict `json:"proxy"`
	Pair      PairVerdict  `json:"pair,omitempty"`
	Reason    Reason       `json:"reason,omitempty"`
	LatencyMS int64        `json:"latency,omitempty"`
}

// VerdictOf returns what outcome o says about its proxy (design §3, third and
// fourth column).
func VerdictOf(o Outcome) Verdict {
	v := Verdict{Proxy: ProxyNeutral, Reason: o.Reason, LatencyMS: o.ConnectMS}
	switch o.Class {
	case OK, TargetPermanent, TooLarge:
		v.Proxy, v.Pair = ProxySuccess, PairPassed
	case TargetTransient:
		v.Proxy, v.Pair = ProxySuccess, PairPassed
		if o.Status == 429 {
			v.Pair = PairThrottled
		}
	case Blocked:
		v.Pair = PairBlocked
	case ProxyAuth:
		v.Proxy = ProxyDenied
	case ProxyFault:
		v.Proxy = ProxyFailure
	case Ambiguous:
		v.Proxy = ProxyUnclear
	}
	return v
}
