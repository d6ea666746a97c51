package fetch_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"holdfast/internal/crawl"
)

func TestAStatusDecidesTheClass(t *testing.T) {
	t.Parallel()
	cases := map[int]crawl.Class{
		200: crawl.OK, 201: crawl.OK, 204: crawl.OK, 206: crawl.OK, 304: crawl.OK,
		300: crawl.TargetPermanent, 305: crawl.TargetPermanent,
		400: crawl.TargetPermanent, 401: crawl.TargetPermanent, 404: crawl.TargetPermanent, 405: crawl.TargetPermanent,
		407: crawl.TargetPermanent, // over no proxy it is the target's nonsense
		410: crawl.TargetPermanent, 414: crawl.TargetPermanent, 418: crawl.TargetPermanent, 451: crawl.TargetPermanent,
		403: crawl.Blocked,
		408: crawl.TargetTransient, 425: crawl.TargetTransient, 429: crawl.TargetTransient, 500: crawl.TargetTransient,
		502: crawl.TargetTransient, 503: crawl.TargetTransient, 504: crawl.TargetTransient,
		520: crawl.TargetTransient, 521: crawl.TargetTransient, 522: crawl.TargetTransient, 523: crawl.TargetTransient, 524: crawl.TargetTransient,
		501: crawl.TargetPermanent, 505: crawl.TargetPermanent, 525: crawl.TargetPermanent, 999: crawl.TargetPermanent,
	}
	c := newClient(t)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
		if status != 204 && status != 304 {
			fmt.Fprint(w, "text")
		}
	})
	for status, class := range cases {
		s := &store{}
		res := do(t, c, get(fmt.Sprintf("%s/%d", srv.URL, status), s))
		reason := crawl.HTTPReason(status)
		switch class {
		case crawl.OK:
			reason = ""
		case crawl.Blocked:
			reason = crawl.ReasonBlocked
		}
		if res.Outcome.Status != status {
			t.Errorf("status %d recorded as %d", status, res.Outcome.Status)
		}
		want(t, res, class, reason)
		if stored := s.committed; stored != (status/100 == 2) {
			t.Errorf("status %d: body stored: %v", status, stored)
		}
	}
}

func TestRetryAfterIsReportedWhenItsHeadersAreReadAndInTheOutcome(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		w.(http.Flusher).Flush()
		<-release // the body comes only after the answer was reported
	})
	var told time.Duration
	r := get(srv.URL, nil)
	r.OnAnswer = func(_ ctx, a answer) { told = a.RetryAfter; close(release) }
	res := do(t, newClient(t), r)
	want(t, res, crawl.TargetTransient, "http_429")
	if told != 7*time.Second || res.Outcome.RetryAfter() != 7*time.Second {
		t.Errorf("told %v, outcome %v, want 7 s", told, res.Outcome.RetryAfter())
	}
}

func TestFaultsOfADirectConnection(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	closed := listen(t, func(net.Conn) {})
	reset := listen(t, func(c net.Conn) {
		readRequest(c)
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	silent := listen(t, func(c net.Conn) { readRequest(c); readRequest(c) })
	garbage := listen(t, func(c net.Conn) { readRequest(c); fmt.Fprint(c, "SSH-2.0-x\r\n\r\n") })
	banner := listen(t, func(c net.Conn) { fmt.Fprint(c, "220 ready to serve mail\r\n"); readRequest(c) })
	refused := refusedAddr(t)
	untrusted := serveTLS(t, func(http.ResponseWriter, *http.Request) {})

	cases := []struct {
		name   string
		url    string
		reason crawl.Reason
	}{
		{"a refused connection", "http://" + refused, crawl.ReasonConnectRefused},
		{"closed without an answer", "http://" + closed, crawl.ReasonReset},
		{"reset after the request", "http://" + reset, crawl.ReasonReset},
		{"no answer in time", "http://" + silent, crawl.ReasonTimeout},
		{"an answer that is not HTTP", "http://" + garbage, crawl.ReasonProtocol},
		{"TLS to a server that speaks none", "https://" + banner, crawl.ReasonTLS},
		{"a certificate for another name", "https://localhost:" + port(untrusted.URL), crawl.ReasonTLS},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := get(tc.url, nil)
			r.Limits.Total = 500 * time.Millisecond
			if tc.reason != crawl.ReasonTimeout {
				r.Limits.Total = 5 * time.Second
			}
			want(t, do(t, c, r), crawl.Ambiguous, tc.reason)
		})
	}
}

func refusedAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
