package activities

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
	"holdfast/internal/robots"
	"holdfast/proxypool"
)

// freshGrant is the age up to which a grant needs no second look at the host's
// not-before when the request is written.
const freshGrant = 500 * time.Millisecond

// siteRules is one origin's robots.txt, while requests are made there.
type siteRules struct {
	origin string
	entry  robots.Entry
}

// hooks ties the exchange to the host's slot: Retry-After closes the host when
// its header is read, a redirect takes a turn at its host, and a request whose
// grant is no longer fresh looks again before it is written. With obey each
// request of the exchange, redirects too, keeps to its origin's robots.txt.
func (p *pass) hooks(r *fetch.Request, h *hold, obey bool) {
	r.OnAnswer = p.onAnswer
	r.BeforeRequest = func(ctx context.Context, to *url.URL) error {
		if s := p.site; obey && s != nil && s.origin == crawl.Origin(to) && !s.entry.Allowed(to.RequestURI()) {
			return &fetch.Stop{Outcome: crawl.Outcome{Class: crawl.RobotsDenied, Reason: crawl.ReasonRobotsDenied}}
		}
		if time.Since(h.since) < freshGrant {
			return nil
		}
		renewed, err := p.a.Pool.Renew(ctx, h.grant.LeaseID, h.grant.Fence)
		if err != nil {
			return fmt.Errorf("renew lease: %w", err)
		}
		h.extend(renewed.Deadline)
		if renewed.NotBefore > 0 {
			return &fetch.Stop{Outcome: crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitNotBefore, WaitMS: ceilMS(renewed.NotBefore)}}
		}
		return nil
	}
	r.OnRedirect = func(ctx context.Context, to *url.URL, _ int) error {
		limits := p.limits()
		if obey {
			ruling, err := p.foreignRobots(ctx, to)
			switch {
			case err != nil:
				return err
			case ruling.outcome != nil:
				return &fetch.Stop{Outcome: *ruling.outcome}
			}
			limits.Interval = max(limits.Interval, ruling.delay)
		}
		return p.hop(ctx, h, crawl.HostKey(to), limits)
	}
}

// onAnswer closes the host of an answer that says when to come back.
func (p *pass) onAnswer(ctx context.Context, a fetch.Answer) {
	if a.RetryAfter <= 0 || (a.Status != http.StatusTooManyRequests && a.Status != http.StatusServiceUnavailable) {
		return
	}
	host := crawl.HostKey(a.URL)
	if err := p.a.Pool.CloseHost(ctx, host, a.RetryAfter); err != nil {
		p.a.Log.Warn("close host", zap.String("host", host), zap.Error(err))
		p.unclosed = append(p.unclosed, openHost{host, time.Now().Add(a.RetryAfter)})
	}
}

// openHost is a host that asked for quiet until a time and could not be closed.
type openHost struct {
	host  string
	until time.Time
}

// closeHosts closes what onAnswer could not.
func (p *pass) closeHosts(ctx context.Context) error {
	for len(p.unclosed) > 0 {
		o := p.unclosed[0]
		if left := time.Until(o.until); left > 0 {
			if err := p.a.Pool.CloseHost(ctx, o.host, left); err != nil {
				return fmt.Errorf("close host: %w", err)
			}
		}
		p.unclosed = p.unclosed[1:]
	}
	return nil
}

// hop moves the lease to a redirect's host, waiting in place for its turn for as
// long as patience lasts; else the next pass goes on there.
func (p *pass) hop(ctx context.Context, h *hold, host string, limits proxypool.HostLimits) error {
	for left := patience; ; {
		got, err := p.a.Pool.Hop(ctx, h.grant.LeaseID, h.grant.Fence, p.in.Task.WorkflowID(), host, limits)
		switch {
		case err != nil:
			return fmt.Errorf("move lease: %w", err)
		case got.Wait == nil:
			h.since = time.Now()
			return nil
		case got.Wait.After > left:
			return &fetch.Stop{Outcome: crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitRedirect, WaitMS: ceilMS(got.Wait.After)}}
		}
		left -= got.Wait.After
		if err := sleep(ctx, got.Wait.After); err != nil {
			return fmt.Errorf("move lease: %w", err)
		}
	}
}

// foreignRobots says what the robots.txt of a redirect's host allows. One that is
// not known is read by the next pass, which goes on there.
func (p *pass) foreignRobots(ctx context.Context, to *url.URL) (robotsRuling, error) {
	entry, ok, err := p.a.robots.of(p.campaign.Spec.UserAgent).get(ctx, crawl.Origin(to))
	switch {
	case err != nil:
		return robotsRuling{}, err
	case !ok:
		return robotsWait(0), nil
	}
	return p.obey(entry, to), nil
}
