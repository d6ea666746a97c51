package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
	"holdfast/internal/results"
	"holdfast/proxypool"
)

// naiveSteps are the product's three steps over the same pool, client and sink.
type naiveSteps struct {
	pool     *proxypool.Pool
	exchange *fetch.Client
	sink     *results.Local
	worker   string
}

type naiveStep struct {
	Task    crawl.Task      `json:"task"`
	LeaseID string          `json:"lease_id"`
	RunID   string          `json:"run_id"`
	Lease   naiveGrant      `json:"lease,omitzero"`
	Fetched crawl.Committed `json:"fetched,omitzero"`
	EndedMS int64           `json:"ended,omitempty"`
}

// naiveGrant is a lease as it lies in history. The lab's proxies have no credentials.
type naiveGrant struct {
	Fence  int64  `json:"fence"`
	Proxy  string `json:"proxy"`
	Scheme string `json:"scheme"`
	Host   string `json:"host"`
	Port   int    `json:"port"`
}

// Lease takes a proxy and the host's turn.
func (s *naiveSteps) Lease(ctx context.Context, in naiveStep) (naiveGrant, error) {
	for {
		got, err := s.pool.Acquire(ctx, proxypool.AcquireRequest{
			LeaseID: in.LeaseID, Holder: in.RunID, Claimant: in.Task.WorkflowID(), Host: in.Task.Host,
			Seed: uint64(in.Task.Epoch),
		})
		switch {
		case err != nil:
			return naiveGrant{}, err
		case got.Ended != nil:
			return naiveGrant{}, errors.New("bench: the lease has ended")
		case got.Grant != nil:
			p := got.Grant.Proxy
			return naiveGrant{Fence: got.Grant.Fence, Proxy: p.ID, Scheme: p.Scheme, Host: p.Host, Port: p.Port}, nil
		}
		select {
		case <-time.After(got.Wait.After):
		case <-ctx.Done():
			return naiveGrant{}, ctx.Err()
		}
	}
}

// Fetch asks the site and stores the body.
func (s *naiveSteps) Fetch(ctx context.Context, in naiveStep) (crawl.Committed, error) {
	started := time.Now()
	r := s.exchange.Do(ctx, fetch.Request{
		Method: "GET", URL: in.Task.URL, AllowPrivate: true, UserAgent: crawl.DefaultUserAgent,
		Proxy:       &crawl.Proxy{ID: in.Lease.Proxy, Scheme: in.Lease.Scheme, Host: in.Lease.Host, Port: in.Lease.Port},
		KeepHeaders: crawl.DefaultSpec().Results.Headers,
		NewBody:     func() (fetch.Body, error) { return s.sink.NewBody(ctx, in.Task.Campaign, in.Task.Run) },
	})
	if r.Err != nil {
		return crawl.Committed{}, r.Err
	}
	if r.Outcome.Class != crawl.OK {
		return crawl.Committed{}, fmt.Errorf("bench: %s", r.Outcome.Class)
	}
	r.Outcome.StartedMS, r.Outcome.Proxy, r.Outcome.Worker = started.UnixMilli(), in.Lease.Proxy, s.worker
	return crawl.Committed{Outcome: r.Outcome, Page: &r.Page}, nil
}

// Finish writes the record and gives the lease back.
func (s *naiveSteps) Finish(ctx context.Context, in naiveStep) error {
	t, o, page := in.Task, in.Fetched.Outcome, in.Fetched.Page
	_, err := s.sink.Append(ctx, crawl.Record{
		Schema: crawl.RecordSchema, Campaign: t.Campaign, Run: t.Run, ID: t.ID, URL: t.URL, Method: t.EffectiveMethod(),
		State: crawl.Completed, Status: o.Status, FinalURL: page.FinalURL, Headers: page.Headers,
		ContentType: page.ContentType, Charset: page.Charset, Body: page.Body,
		Attempts: []crawl.Attempt{{
			N: 1, Worker: o.Worker, Proxy: o.Proxy, Class: o.Class, Status: o.Status, Started: crawl.Stamp(o.StartedMS), TookMS: o.TookMS,
		}},
		Bytes: o.Bytes, WireBytes: o.WireBytes, SHA256: o.SHA256,
		Accepted: crawl.Stamp(t.AcceptedMS), Ended: crawl.Stamp(in.EndedMS), WorkflowID: t.WorkflowID(), RunID: in.RunID,
	})
	if err != nil {
		return err
	}
	_, err = s.pool.Release(ctx, proxypool.ReleaseRequest{LeaseID: in.LeaseID, Verdict: crawl.VerdictOf(o)})
	return err
}
