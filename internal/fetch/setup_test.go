package fetch_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"sync"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
)

// store is a body store in memory.
type store struct {
	mu        sync.Mutex
	buf       bytes.Buffer
	n         int64
	keep      bool
	committed bool
	discarded bool
	writeErr  error
	commitErr error
	onWrite   func()
}

func (s *store) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr != nil {
		return 0, s.writeErr
	}
	s.n += int64(len(p))
	if s.onWrite != nil {
		s.onWrite()
	}
	if s.keep {
		s.buf.Write(p)
	}
	return len(p), nil
}

func (s *store) Commit() (crawl.BodyRef, string, error) {
	if s.commitErr != nil {
		return crawl.BodyRef{}, "", s.commitErr
	}
	s.committed = true
	sum := sha256.Sum256(s.buf.Bytes())
	return crawl.BodyRef{Store: "test", Path: "b"}, hex.EncodeToString(sum[:]), nil
}

func (s *store) Discard() { s.discarded = !s.committed }

var errDisk = errors.New("disk full")

func newClient(t testing.TB) *fetch.Client {
	t.Helper()
	return fetch.New(fetch.Options{RootCAs: roots(t)})
}

// get returns a request for url that may reach loopback and stores into s.
func get(url string, s *store) fetch.Request {
	r := fetch.Request{
		Method: "GET", URL: url, AllowPrivate: true, UserAgent: "holdfast/test",
		Limits: fetch.Limits{Total: 10 * time.Second, Connect: 5 * time.Second},
	}
	if s != nil {
		s.keep = true
		r.NewBody = func() (fetch.Body, error) { return s, nil }
	}
	return r
}

func do(t testing.TB, c *fetch.Client, r fetch.Request) fetch.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res := c.Do(ctx, r)
	if res.Err != nil {
		t.Fatalf("exchange failed on our side: %v", res.Err)
	}
	return res
}

func want(t testing.TB, res fetch.Result, class crawl.Class, reason crawl.Reason) {
	t.Helper()
	if res.Outcome.Class != class || res.Outcome.Reason != reason {
		t.Errorf("got %s/%s (status %d), want %s/%s", res.Outcome.Class, res.Outcome.Reason, res.Outcome.Status, class, reason)
	}
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func serveTLS(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return s
}

type (
	ctx    = context.Context
	answer = fetch.Answer
)

func port(raw string) string {
	u, err := neturl.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Port()
}
