package lab_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func site(t testing.TB, o lab.SiteOptions) *lab.Site {
	t.Helper()
	s, err := lab.NewSite(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func proxy(t testing.TB, o lab.ProxyOptions) *lab.Proxy {
	t.Helper()
	p, err := lab.NewProxy(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// client asks through via, or directly; it follows no redirect.
func client(t testing.TB, via *url.URL, roots *x509.CertPool) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	if via != nil {
		tr.Proxy = http.ProxyURL(via)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport: tr, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// got is an answer, as far as it came.
type got struct {
	status int
	header http.Header
	body   []byte
	err    error // of the request, or of reading the body
}

func get(t testing.TB, c *http.Client, u string) got {
	t.Helper()
	resp, err := c.Get(u)
	if err != nil {
		return got{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	return got{status: resp.StatusCode, header: resp.Header, body: body, err: err}
}

// eventually polls until ok holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(10 * time.Second); !ok(); <-poll.C {
		if time.Now().After(end) {
			t.Fatalf("never saw %s", what)
		}
	}
}

func truncated(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
