package crawl

import (
	"fmt"
	"time"
)

// Facts are what Decide looks at beside the outcome.
type Facts struct {
	Task Task
	// Seed and Pass make the draws of this decision, see Draw.
	Seed uint64
	Pass int
}

// Free waits: they spend no ledger, for the URL has no part in them.
const (
	infraFirst = 5 * time.Second
	infraCap   = time.Minute
	pauseFirst = time.Minute
	pauseCap   = time.Hour
	handOver   = time.Second
)

// Decide says what follows from an outcome (design §3): it books the pass into
// the ledgers and returns them with the decision. Pure: equal inputs, equal answers.
func Decide(f Facts, l Ledgers, o Outcome) (Decision, Ledgers) {
	r := ruling{facts: f, policy: f.Task.Policy.WithDefaults(), l: l, o: o}
	d := r.decide()
	return d, r.l
}

type ruling struct {
	facts  Facts
	policy Policy
	l      Ledgers
	o      Outcome
}

func (r *ruling) decide() Decision {
	if r.o.Why != WaitRedis && r.o.Why != WaitStore {
		r.l.Infra = 0
	}
	if r.o.Why != WaitPaused {
		r.l.Pauses = 0
	}
	if r.o.Exchanged() {
		r.l.ProxyWaited, r.l.RobotsWaited = 0, 0
	}
	switch r.o.Class {
	case OK:
		return Decision{Action: Done}
	case TargetPermanent:
		return r.fail(HTTPReason(r.o.Status))
	case Permanent, TooLarge:
		return r.fail(ReasonInvalidURL)
	case RobotsDenied:
		d := r.fail(ReasonRobotsDenied)
		d.Skip = d.Reason == ReasonCrawlDelayTooLong
		return d
	case Blocked:
		return r.blocked()
	case TargetTransient:
		return r.transient()
	case ProxyAuth, ProxyFault:
		return r.proxyFault()
	case Ambiguous:
		return r.ambiguous()
	case Canceled:
		return Decision{Action: Stopped}
	case HandedOn:
		return Decision{Action: Retry, Delay: handOver, Summary: "handed on by a worker that stops"}
	case Ended:
		return r.ended()
	case Deferred:
		return r.deferred()
	}
	return r.fail(ReasonRetriesExhausted)
}

// fail ends the URL with the outcome's own reason, or fallback where it has none.
func (r *ruling) fail(fallback Reason) Decision {
	if r.o.Reason != "" {
		return Decision{Action: Fail, Reason: r.o.Reason}
	}
	return Decision{Action: Fail, Reason: fallback}
}

func (r *ruling) blocked() Decision {
	r.l.Attempts++
	r.l.Blocks++
	if r.l.Blocks > r.policy.RetryBlocked || r.passedOn() {
		return Decision{Action: Fail, Reason: ReasonBlocked}
	}
	return r.backoff(fmt.Sprintf("blocked%s, asking another proxy", r.via()))
}

func (r *ruling) transient() Decision {
	if r.passedOn() {
		return Decision{Action: Fail, Reason: ReasonAmbiguousUnsafe}
	}
	wait := r.o.RetryAfter()
	if wait <= 0 {
		r.l.Attempts++
		if r.l.Attempts >= r.policy.MaxAttempts {
			return Decision{Action: Fail, Reason: ReasonRetriesExhausted}
		}
		return r.backoff(fmt.Sprintf("%d%s, attempt %d of %d", r.o.Status, r.via(), r.l.Attempts, r.policy.MaxAttempts))
	}
	if wait > r.policy.MaxRetryAfter {
		return Decision{Action: Fail, Reason: ReasonRetryAfterTooLong}
	}
	r.l.Throttled++
	if r.l.Throttled > r.policy.MaxThrottled {
		return Decision{Action: Fail, Reason: ReasonThrottled}
	}
	return r.wait(wait, WaitNotBefore, fmt.Sprintf("Retry-After %d s, %d%s", CeilSeconds(wait), r.o.Status, r.via()))
}

// proxyFault goes on elsewhere at once, and slows down only when one proxy after
// another fails: then something else is wrong.
func (r *ruling) proxyFault() Decision {
	r.l.ProxyFaults++
	if r.o.Class == ProxyAuth {
		r.l.Denied++
	} else if r.o.Requests > 0 && !r.facts.Task.SafeToRepeat() {
		return Decision{Action: Fail, Reason: ReasonAmbiguousUnsafe}
	}
	if r.l.ProxyFaults > r.policy.MaxProxyFaults {
		return Decision{Action: Fail, Reason: ReasonProxyFaults}
	}
	if r.l.ProxyFaults <= 2 {
		return Decision{Action: Retry}
	}
	return r.backoff(fmt.Sprintf("%s%s, proxy fault %d of %d", r.o.Reason, r.via(), r.l.ProxyFaults, r.policy.MaxProxyFaults))
}

func (r *ruling) ambiguous() Decision {
	if r.o.Requests > 0 && !r.facts.Task.SafeToRepeat() {
		return Decision{Action: Fail, Reason: ReasonAmbiguousUnsafe}
	}
	r.l.Attempts++
	if r.l.Attempts >= r.policy.MaxAttempts {
		return Decision{Action: Fail, Reason: ReasonRetriesExhausted}
	}
	return r.backoff(fmt.Sprintf("%s%s, attempt %d of %d", r.o.Reason, r.via(), r.l.Attempts, r.policy.MaxAttempts))
}

// passedOn reports an unsafe request that its target has answered with a redirect
// in this pass: what came after that answer is no reason to send it again.
func (r *ruling) passedOn() bool { return r.o.Requests > 1 && !r.facts.Task.SafeToRepeat() }

// ended: the lease was gone without an outcome; a request may have been under way.
func (r *ruling) ended() Decision {
	if !r.facts.Task.SafeToRepeat() {
		return Decision{Action: Fail, Reason: ReasonAmbiguousUnsafe}
	}
	return Decision{Action: Retry}
}

func (r *ruling) deferred() Decision {
	switch r.o.Why {
	case WaitRedis, WaitStore:
		d := r.jittered(doubled(infraFirst, infraCap, r.l.Infra))
		r.l.Infra++
		return Decision{Action: Retry, Delay: d, Why: r.o.Why, Summary: summaryOf(r.o.Why)}
	case WaitPaused:
		d := doubled(pauseFirst, pauseCap, r.l.Pauses)
		r.l.Pauses++
		return Decision{Action: Retry, Delay: d, Why: r.o.Why, Summary: "campaign is paused"}
	case WaitGeneration, WaitSuperseded:
		return Decision{Action: Retry, Delay: max(r.o.Wait(), time.Second), Why: r.o.Why, Summary: summaryOf(r.o.Why)}
	case WaitRobots:
		r.l.RobotsWaited += r.o.Wait()
		if r.l.RobotsWaited > r.policy.MaxRobotsWait {
			return Decision{Action: Fail, Reason: ReasonRobotsUnreachable}
		}
	case WaitNoProxy, WaitProxyBusy:
		if r.o.Why == WaitNoProxy && r.l.Denied > 0 {
			return Decision{Action: Fail, Reason: ReasonProxyAuth}
		}
		r.l.ProxyWaited += r.o.Wait()
		if r.l.ProxyWaited > r.policy.MaxProxyWait {
			return Decision{Action: Fail, Reason: ReasonNoProxy}
		}
	}
	r.l.Deferrals++
	return r.wait(r.o.Wait(), r.o.Why, summaryOf(r.o.Why))
}

// backoff waits by decorrelated jitter.
func (r *ruling) backoff(cause string) Decision {
	d := Decorrelated(r.policy.BackoffBase, r.policy.BackoffCap, r.l.Backoff, Draw(r.facts.Seed, r.facts.Pass))
	r.l.Backoff = d
	return r.wait(d, WaitBackoff, fmt.Sprintf("backoff %.1f s, %s", d.Seconds(), cause))
}

// wait books a wait, or fails the URL whose waits grow too long.
func (r *ruling) wait(d time.Duration, why WaitReason, summary string) Decision {
	if r.l.Waited+d > r.policy.MaxWait {
		return Decision{Action: Fail, Reason: ReasonMaxWait}
	}
	r.l.Waited += d
	return Decision{Action: Retry, Delay: d, Why: why, Summary: summary}
}

func (r *ruling) jittered(d time.Duration) time.Duration {
	return d/2 + time.Duration(Draw(r.facts.Seed, r.facts.Pass)*float64(d)/2)
}

func (r *ruling) via() string {
	if r.o.Proxy == "" {
		return ""
	}
	return " via " + r.o.Proxy
}

func doubled(first, limit time.Duration, n int) time.Duration {
	if n > 20 {
		return limit
	}
	return min(first<<n, limit)
}

func summaryOf(why WaitReason) string {
	switch why {
	case WaitHostTurn:
		return "the host's turn"
	case WaitHostBusy:
		return "the host's concurrency"
	case WaitNotBefore:
		return "the host's Retry-After"
	case WaitProxyBusy:
		return "all eligible proxies are in use, resting or cooling"
	case WaitNoProxy:
		return "no eligible proxy"
	case WaitRobots:
		return "robots.txt"
	case WaitRedirect:
		return "the turn of a redirect's host"
	case WaitRedis:
		return "redis unavailable"
	case WaitStore:
		return "results store unavailable"
	case WaitSuperseded:
		return "another execution of this pass went on"
	case WaitGeneration:
		return "the pool's Redis lost grants; closed for one lease lifetime"
	}
	return string(why)
}
