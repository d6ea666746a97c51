package fetch_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
)

func encode(t testing.TB, coding string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "flate":
		w, err = flate.NewWriter(&b, 9)
	case "br":
		w = brotli.NewWriterLevel(&b, 5)
	case "zstd":
		w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	case "zstd-wide":
		w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(16<<20))
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// send serves body as it is, under a Content-Encoding.
func send(coding string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if coding != "" {
			w.Header().Set("Content-Encoding", coding)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}
}

func TestBodiesAreDecoded(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("holdfast kelp ", 5000))
	gz := encode(t, "gzip", text)
	cases := []struct {
		name, coding string
		body         []byte
		want         []byte
	}{
		{"as it is", "", text, text},
		{"identity", "identity", text, text},
		{"gzip", "gzip", gz, text},
		{"x-gzip in capitals", "X-GZIP", gz, text},
		{"deflate with a zlib wrapper", "deflate", encode(t, "zlib", text), text},
		{"deflate without one", "deflate", encode(t, "flate", text), text},
		{"brotli", "br", encode(t, "br", text), text},
		{"zstd", "zstd", encode(t, "zstd", text), text},
		{"gzip in brotli", "gzip, br", encode(t, "br", gz), text},
		{"two gzip members", "gzip", append(append([]byte(nil), gz...), gz...), append(append([]byte(nil), text...), text...)},
		{"an empty body that claims gzip", "gzip", nil, nil},
		{"a coding that is a mistake", "utf-8", text, text},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := &store{}
			res := do(t, newClient(t), get(serve(t, send(tc.coding, tc.body)).URL, s))
			want(t, res, crawl.OK, "")
			if !bytes.Equal(s.buf.Bytes(), tc.want) || !s.committed {
				t.Errorf("stored %d bytes, want %d; committed %v", s.buf.Len(), len(tc.want), s.committed)
			}
			o := res.Outcome
			if o.Bytes != int64(len(tc.want)) || o.WireBytes != int64(len(tc.body)) || len(o.SHA256) != 64 || res.Page.Body == nil {
				t.Errorf("outcome %+v, body %v", o, res.Page.Body)
			}
		})
	}
}

func TestBodiesThatAreNotWholeAreNeverStored(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("0123456789abcdef", 4000))
	gz, br, zs := encode(t, "gzip", text), encode(t, "br", text), encode(t, "zstd", text)
	corrupt := append([]byte(nil), gz...)
	corrupt[len(corrupt)-5] ^= 0xff // the checksum
	raw := func(head string, body []byte) string {
		return "http://" + listen(t, func(c net.Conn) {
			readRequest(c)
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n"+head+"\r\n\r\n")
			_, _ = c.Write(body)
		})
	}
	cases := []struct {
		name, url string
		class     crawl.Class
		reason    crawl.Reason
	}{
		{"Content-Length 1000, 400 sent", raw("Content-Length: 1000", make([]byte, 400)), crawl.Ambiguous, crawl.ReasonTruncated},
		{"chunks cut", raw("Transfer-Encoding: chunked", []byte("5\r\nhello\r\n")), crawl.Ambiguous, crawl.ReasonTruncated},
		{"chunks that are none", raw("Transfer-Encoding: chunked", []byte("zz\r\nhello\r\n")), crawl.Ambiguous, crawl.ReasonProtocol},
		{"a whole gzip on a cut wire", raw("Content-Encoding: gzip\r\nContent-Length: "+strconv.Itoa(len(gz)+10), gz), crawl.Ambiguous, crawl.ReasonTruncated},
		{"gzip cut short", serve(t, send("gzip", gz[:len(gz)/2])).URL, crawl.Ambiguous, crawl.ReasonTruncated},
		{"brotli cut short", serve(t, send("br", br[:len(br)/2])).URL, crawl.Ambiguous, crawl.ReasonTruncated},
		{"zstd cut short", serve(t, send("zstd", zs[:len(zs)/2])).URL, crawl.Ambiguous, crawl.ReasonTruncated},
		{"gzip with a wrong checksum", serve(t, send("gzip", corrupt)).URL, crawl.Ambiguous, crawl.ReasonBadEncoding},
		{"no gzip at all", serve(t, send("gzip", text)).URL, crawl.Ambiguous, crawl.ReasonBadEncoding},
		{"no deflate at all", serve(t, send("deflate", text)).URL, crawl.Ambiguous, crawl.ReasonBadEncoding},
		{"a coding we did not offer", serve(t, send("compress", text)).URL, crawl.Ambiguous, crawl.ReasonBadEncoding},
		{"three layers", serve(t, send("gzip, gzip, gzip", text)).URL, crawl.TooLarge, crawl.ReasonTooLarge},
		{"zstd with a window over 8 MiB", serve(t, send("zstd", encode(t, "zstd-wide", bytes.Repeat(text, 200)))).URL, crawl.TooLarge, crawl.ReasonTooLarge},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := &store{}
			res := do(t, newClient(t), get(tc.url, s))
			want(t, res, tc.class, tc.reason)
			if s.committed || s.n > 0 && !s.discarded || res.Page.Body != nil {
				t.Errorf("committed %v, discarded %v, body %v", s.committed, s.discarded, res.Page.Body)
			}
		})
	}
}

func TestCapsEndAnExchangeAsTooLarge(t *testing.T) {
	t.Parallel()
	small := fetch.Limits{MaxWire: 1000, MaxBody: 1000}
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	}
	header := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("a", 9000)) }
	cases := []struct {
		name    string
		handler http.HandlerFunc
		limits  fetch.Limits
		class   crawl.Class
	}{
		{"a body without end", endless, small, crawl.TooLarge},
		{"a Content-Length over the cap", send("", make([]byte, 1001)), small, crawl.TooLarge},
		{"a body of exactly the cap", send("", make([]byte, 1000)), small, crawl.OK},
		{"decoded over the cap", send("gzip", encode(t, "gzip", make([]byte, 1001))), small, crawl.TooLarge},
		{"decoded to exactly the cap", send("gzip", encode(t, "gzip", make([]byte, 1000))), small, crawl.OK},
		{"the ratio", send("gzip", encode(t, "gzip", make([]byte, 3<<20))), fetch.Limits{MaxRatio: 100}, crawl.TooLarge},
		{"the ratio over two layers", send("gzip, gzip", encode(t, "gzip", encode(t, "gzip", make([]byte, 16<<20)))), fetch.Limits{MaxRatio: 2000}, crawl.TooLarge},
		{"an inner layer that decodes to nothing", send("gzip, gzip", encode(t, "gzip", bytes.Repeat(encode(t, "gzip", nil), 100_000))), fetch.Limits{MaxBody: 1 << 20}, crawl.TooLarge},
		{"the header", header, fetch.Limits{MaxHeader: 4096}, crawl.TooLarge},
		{"a header under the cap", header, fetch.Limits{MaxHeader: 16 << 10}, crawl.OK},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := &store{}
			r := get(serve(t, tc.handler).URL, s)
			s.keep = false
			r.Limits = tc.limits
			res := do(t, newClient(t), r)
			reason := crawl.ReasonTooLarge
			if tc.class == crawl.OK {
				reason = ""
			}
			want(t, res, tc.class, reason)
			if s.committed != (tc.class == crawl.OK) {
				t.Errorf("committed %v", s.committed)
			}
		})
	}
}

// TestABombLeavesMemoryFlat cannot run beside others: it measures the heap.
func TestABombLeavesMemoryFlat(t *testing.T) {
	for _, coding := range []string{"gzip", "br", "zstd"} {
		bomb := encode(t, coding, make([]byte, 64<<20))
		srv := serve(t, send(coding, bomb))
		var peak atomic.Uint64
		s := &store{}
		s.onWrite = func() {
			if s.n%(8<<20) < 32<<10 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapAlloc))
			}
		}
		r := get(srv.URL, s)
		s.keep = false
		r.Limits.MaxBody, r.Limits.MaxRatio = 1<<40, 1<<40
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		res := do(t, newClient(t), r)
		want(t, res, crawl.OK, "")
		if res.Outcome.Bytes != 64<<20 {
			t.Errorf("%s: %d bytes", coding, res.Outcome.Bytes)
		}
		if grown := int64(peak.Load()) - int64(before.HeapAlloc); grown > 20<<20 {
			t.Errorf("%s: the heap grew by %d MiB", coding, grown>>20)
		}
		r.Limits.MaxBody, r.Limits.MaxRatio = 0, 0
		want(t, do(t, newClient(t), r), crawl.TooLarge, crawl.ReasonTooLarge)
	}
}

func TestASlowBodyIsGivenUp(t *testing.T) {
	t.Parallel()
	trickle := func(gap time.Duration, n int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(gap)
			defer tick.Stop()
			for range n {
				fmt.Fprint(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-tick.C:
				case <-r.Context().Done():
					return
				}
			}
		}
	}
	c := newClient(t)
	c.SetRateWindow(200 * time.Millisecond)
	r := get(serve(t, trickle(20*time.Millisecond, 1000)).URL, &store{})
	r.Limits.MinRate = 1000 // 200 bytes a window; some 10 come
	want(t, do(t, c, r), crawl.Ambiguous, crawl.ReasonTooSlow)

	r = get(serve(t, trickle(time.Hour, 2)).URL, &store{}) // stalls after one byte
	r.Limits.MinRate = 1000
	want(t, do(t, c, r), crawl.Ambiguous, crawl.ReasonTooSlow)

	r = get(serve(t, trickle(10*time.Millisecond, 60)).URL, &store{})
	r.Limits.MinRate = 5 // one byte a window is enough
	want(t, do(t, c, r), crawl.OK, "")
}

func TestTheTotalTimeHoldsInTheBody(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "x")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	r := get(srv.URL, &store{})
	r.Limits.Total = 200 * time.Millisecond
	res := do(t, newClient(t), r)
	want(t, res, crawl.Ambiguous, crawl.ReasonTimeout)
	if res.Outcome.Status != 200 || res.Outcome.TookMS < 200 {
		t.Errorf("outcome %+v", res.Outcome)
	}
}

func TestAStoreThatFailsIsNotTheSitesFault(t *testing.T) {
	t.Parallel()
	srv := serve(t, page)
	for name, change := range map[string]func(*fetch.Request, *store){
		"open":   func(r *fetch.Request, _ *store) { r.NewBody = func() (fetch.Body, error) { return nil, errDisk } },
		"write":  func(_ *fetch.Request, s *store) { s.writeErr = errDisk },
		"commit": func(_ *fetch.Request, s *store) { s.commitErr = errDisk },
	} {
		s := &store{}
		r := get(srv.URL, s)
		change(&r, s)
		res := newClient(t).Do(t.Context(), r)
		if !errors.Is(res.Err, errDisk) || res.Outcome.Reason != crawl.ReasonStore {
			t.Errorf("%s: %v, %+v", name, res.Err, res.Outcome)
		}
		if name != "open" && !s.discarded {
			t.Errorf("%s: what was written is left behind", name)
		}
	}
}

func TestWithoutAStoreTheBodyIsReadAndCounted(t *testing.T) {
	t.Parallel()
	res := do(t, newClient(t), get(serve(t, page).URL, nil))
	want(t, res, crawl.OK, "")
	if res.Outcome.Bytes != 8 || len(res.Outcome.SHA256) != 64 || res.Page.Body != nil {
		t.Errorf("outcome %+v", res.Outcome)
	}
}

func TestHEADHasNoBodyToStore(t *testing.T) {
	t.Parallel()
	s := &store{}
	r := get(serve(t, send("gzip", make([]byte, 100))).URL, s)
	r.Method = http.MethodHead
	want(t, do(t, newClient(t), r), crawl.OK, "")
	if s.committed || s.n > 0 {
		t.Error("a body was stored")
	}
}
