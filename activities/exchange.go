package activities

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"time"

	"go.uber.org/zap"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
	"holdfast/proxypool"
)

// exchange asks the site under a grant, and commits what came of it.
//
// An unsafe request that was sent and whose end is not committed is never asked
// again: whatever cut it off, the URL ends as ambiguous.
func (p *pass) exchange(ctx context.Context, grant *proxypool.Grant, target *url.URL) (crawl.Outcome, error) {
	request, err := p.request(ctx, grant, target)
	if err != nil {
		return crawl.Outcome{}, err
	}
	before, err := p.trail(ctx)
	if err != nil {
		return crawl.Outcome{}, err
	}
	if by, ok := ctx.Deadline(); ok && time.Until(by) < request.Limits.Total {
		return crawl.Outcome{}, fmt.Errorf("begin exchange: %w", errLate)
	}
	held := p.hold(ctx, grant)
	defer held.letGo()
	p.hooks(&request, held, p.obeys())

	started := time.Now()
	result := p.a.Exchange.Do(held.ctx, request)
	out := result.Outcome
	out.Held, out.Worker, out.StartedMS = true, p.a.Worker, started.UnixMilli()
	if grant.Proxy != nil {
		out.Proxy, out.Region = grant.Proxy.ID, grant.Proxy.Region
	}
	end, err := p.endOf(held, out, result, before)
	sent := out.Requests > 0 && !p.in.Task.SafeToRepeat()
	if sent && (err != nil || end.Class == crawl.HandedOn || end.Class == crawl.Deferred && end.NextURL == "") {
		out.Class, out.Reason = crawl.Ambiguous, crawl.ReasonStale
		return out, nil
	}
	return end, err
}

// endOf says what a pass comes to by its exchange.
func (p *pass) endOf(h *hold, out crawl.Outcome, result fetch.Result, before []crawl.Redirect) (crawl.Outcome, error) {
	switch {
	case out.Class == crawl.Canceled || (result.Err != nil && h.ctx.Err() != nil):
		return p.broken(h, out)
	case result.Err != nil:
		return p.unserved(h, out, result.Err)
	case !out.Exchanged() && out.NextURL == "" && out.Class != crawl.RobotsDenied:
		return out, nil // a hook stopped it before it had come anywhere
	}
	page := result.Page
	page.Redirects = append(before, page.Redirects...)
	return p.commit(h, out, compact(page))
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

// unserved maps what failed on our side: the body's store, the lease, Redis.
func (p *pass) unserved(h *hold, out crawl.Outcome, err error) (crawl.Outcome, error) {
	switch {
	case errors.Is(err, proxypool.ErrStale):
		return crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitSuperseded, Held: true}, nil
	case out.Reason == crawl.ReasonStore:
		p.a.Log.Warn("store body", zap.String("lease", h.grant.LeaseID), zap.Error(err))
		return crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitStore, Held: true}, nil
	}
	return crawl.Outcome{}, err
}

// commit stores the outcome under the lease, for whoever runs this pass again.
// It tries for as long as the lease is trusted: what is not committed is asked
// again. A host that could not be closed when its Retry-After came is closed first.
func (p *pass) commit(h *hold, out crawl.Outcome, page *crawl.Page) (crawl.Outcome, error) {
	blob, err := encodeCommitted(crawl.Committed{Outcome: out, Page: page})
	if err != nil {
		return crawl.Outcome{}, err
	}
	until := h.trustedUntil()
	if !p.commitBy.IsZero() && p.commitBy.Before(until) {
		until = p.commitBy
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(h.ctx), until)
	defer cancel()
	for {
		if err = p.closeHosts(ctx); err == nil {
			err = p.a.Pool.Commit(ctx, h.grant.LeaseID, h.grant.Fence, blob)
		}
		switch {
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

// trail returns the redirects that earlier passes followed on the way here.
func (p *pass) trail(ctx context.Context) ([]crawl.Redirect, error) {
	if p.in.Trail == "" {
		return nil, nil
	}
	page, err := p.a.pageOf(ctx, p.in.Trail)
	if err != nil {
		return nil, err
	}
	return slices.Clone(page.Redirects), nil
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
	if p.in.NextMethod != "" {
		// A redirect of an earlier pass changed the method (RFC 9110 §15.4).
		r.Method, r.Body = p.in.NextMethod, nil
		for _, k := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
			r.Header.Del(k)
		}
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

// parseTarget checks what was checked when the URL was accepted.
func parseTarget(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("activities: not a URL with a host")
	}
	return u, nil
}
