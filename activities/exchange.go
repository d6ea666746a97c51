package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"time"

	"go.uber.org/zap"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
	"holdfast/proxypool"
)

// freshGrant is the age up to which a grant needs no second look at the host's
// not-before when the request is written.
const freshGrant = 500 * time.Millisecond

// exchange asks the site under a grant, and commits what came of it.
func (p *pass) exchange(ctx context.Context, grant *proxypool.Grant, target *url.URL, limits proxypool.HostLimits) (crawl.Outcome, error) {
	request, err := p.request(ctx, grant, target)
	if err != nil {
		return crawl.Outcome{}, err
	}
	held := p.hold(ctx, grant)
	defer held.letGo()
	p.hooks(&request, held, limits)

	started := time.Now()
	result := p.a.Exchange.Do(held.ctx, request)
	out := result.Outcome
	out.Held, out.Worker, out.StartedMS = true, p.a.Worker, started.UnixMilli()
	if grant.Proxy != nil {
		out.Proxy, out.Region = grant.Proxy.ID, grant.Proxy.Region
	}
	switch {
	case out.Class == crawl.Canceled || (result.Err != nil && held.ctx.Err() != nil):
		return p.broken(held, out)
	case result.Err != nil:
		p.a.Log.Warn("store body", zap.String("lease", grant.LeaseID), zap.Error(result.Err))
		return crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitStore, Held: true}, nil
	case !out.Exchanged():
		return out, nil // a hook stopped it: a redirect's turn, a closed host
	}
	return p.commit(held, out, &result.Page)
}

// broken maps an exchange that was cut off by the cause for which it was.
func (p *pass) broken(h *hold, out crawl.Outcome) (crawl.Outcome, error) {
	switch cause := context.Cause(h.ctx); {
	case errors.Is(cause, errAborted):
		return crawl.Outcome{Class: crawl.Canceled, Proxy: out.Proxy, Held: true}, nil
	case errors.Is(cause, errStopping):
		return crawl.Outcome{Class: crawl.HandedOn, Proxy: out.Proxy, Held: true}, nil
	case errors.Is(cause, errStale):
		return crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitSuperseded, Held: true}, nil
	}
	return crawl.Outcome{}, fmt.Errorf("exchange cut off: %w", context.Cause(h.ctx))
}

// commit stores the outcome under the lease, for whoever runs this pass again.
// It tries for as long as the lease is trusted: what is not committed is asked again.
func (p *pass) commit(h *hold, out crawl.Outcome, page *crawl.Page) (crawl.Outcome, error) {
	blob, err := json.Marshal(crawl.Committed{Outcome: out, Page: page})
	if err != nil {
		return crawl.Outcome{}, fmt.Errorf("encode outcome: %w", err)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(h.ctx), h.trustedUntil())
	defer cancel()
	for {
		switch err = p.a.Pool.Commit(ctx, h.grant.LeaseID, h.grant.Fence, blob); {
		case err == nil:
			p.a.pages.put(h.grant.LeaseID, page)
			return out, nil
		case errors.Is(err, proxypool.ErrStale):
			return crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitSuperseded, Held: true}, nil
		}
		if sleep(ctx, 200*time.Millisecond) != nil {
			return crawl.Outcome{}, fmt.Errorf("commit outcome: %w", err)
		}
	}
}

// request puts the exchange together: the campaign's, then the request's own fields.
func (p *pass) request(ctx context.Context, grant *proxypool.Grant, target *url.URL) (fetch.Request, error) {
	spec := p.campaign.Spec
	r := fetch.Request{
		Method: p.in.Task.EffectiveMethod(), URL: target.String(), Header: http.Header{},
		Proxy: grant.Proxy, AllowPrivate: spec.AllowPrivate, Hops: p.in.Hops,
		KeepHeaders: spec.Results.Headers,
		Limits: fetch.Limits{
			Total: p.in.Task.EffectiveTimeout(), MaxBody: spec.Fetch.MaxBody,
			MaxWire: spec.Fetch.MaxBody, MaxRedirects: spec.Fetch.MaxRedirects,
		},
	}
	if p.in.NextURL == "" {
		r.URL = p.in.Task.URL // as written
	}
	r.UserAgent, r.From = identity(spec, p.a.Version)
	for k, v := range spec.Fetch.Headers {
		r.Header.Set(k, v)
	}
	if p.in.Task.Extras {
		extra, err := p.a.Frontier.Extras(ctx, p.in.Task.RunName(), p.in.Task.ID)
		if err != nil {
			return fetch.Request{}, fmt.Errorf("read request: %w", err)
		}
		for k, v := range extra.Headers {
			r.Header.Set(k, v)
		}
		r.Body = []byte(extra.Body)
	}
	if spec.Results.Bodies != "none" {
		r.NewBody = func() (fetch.Body, error) { return p.a.Sink.NewBody(ctx, spec.Name, p.in.Task.Run) }
	}
	return r, nil
}

// identity returns the User-Agent and, for a mail address as contact, From.
func identity(spec crawl.Spec, version string) (agent, from string) {
	agent = spec.UserAgent
	if agent == crawl.DefaultUserAgent {
		agent += "/" + version
	}
	if spec.Contact == "" {
		return agent, ""
	}
	if a, err := mail.ParseAddress(spec.Contact); err == nil {
		from = a.Address
	}
	return agent + " (+" + spec.Contact + ")", from
}

// hooks ties the exchange to the host's slot: Retry-After closes the host when
// its header is read, a redirect takes a turn at its host, and a request whose
// grant is no longer fresh looks again before it is written.
func (p *pass) hooks(r *fetch.Request, h *hold, limits proxypool.HostLimits) {
	r.OnAnswer = func(ctx context.Context, a fetch.Answer) {
		if a.RetryAfter <= 0 || (a.Status != http.StatusTooManyRequests && a.Status != http.StatusServiceUnavailable) {
			return
		}
		if err := p.a.Pool.CloseHost(ctx, crawl.HostKey(a.URL), a.RetryAfter); err != nil {
			p.a.Log.Warn("close host", zap.String("host", crawl.HostKey(a.URL)), zap.Error(err))
		}
	}
	r.BeforeRequest = func(ctx context.Context, _ *url.URL) error {
		if time.Since(h.since) < freshGrant {
			return nil
		}
		renewed, err := p.a.Pool.Renew(ctx, h.grant.LeaseID, h.grant.Fence)
		if err != nil {
			return fmt.Errorf("renew lease: %w", err)
		}
		if renewed.NotBefore > 0 {
			return &fetch.Stop{Outcome: crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitNotBefore, WaitMS: ceilMS(renewed.NotBefore)}}
		}
		return nil
	}
	r.OnRedirect = func(ctx context.Context, to *url.URL, hops int) error {
		got, err := p.a.Pool.Hop(ctx, h.grant.LeaseID, h.grant.Fence, p.in.Task.WorkflowID(), crawl.HostKey(to), limits)
		for left := patience; err == nil && got.Wait != nil && got.Wait.After <= left; {
			left -= got.Wait.After
			if err = sleep(ctx, got.Wait.After); err == nil {
				got, err = p.a.Pool.Hop(ctx, h.grant.LeaseID, h.grant.Fence, p.in.Task.WorkflowID(), crawl.HostKey(to), limits)
			}
		}
		switch {
		case err != nil:
			return fmt.Errorf("move lease: %w", err)
		case got.Wait != nil:
			return &fetch.Stop{Outcome: crawl.Outcome{
				Class: crawl.Deferred, Why: crawl.WaitRedirect, WaitMS: ceilMS(got.Wait.After), NextURL: to.String(), Hops: hops,
			}}
		}
		h.since = time.Now()
		return nil
	}
}

// parseTarget checks what was checked when the URL was accepted.
func parseTarget(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("activities: not a URL with a host")
	}
	return u, nil
}
