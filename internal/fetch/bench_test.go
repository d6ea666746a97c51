package fetch_test

import (
	"bytes"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
)

// BenchmarkDo fetches a page of 20 kB through a loopback proxy, over http (no
// tunnel) and over https (CONNECT and a TLS handshake each).
func BenchmarkDo(b *testing.B) {
	body := bytes.Repeat([]byte("holdfast "), 20_000/9)
	for _, bc := range []struct{ name, url string }{
		{"http", serve(b, send("", body)).URL},
		{"https", serveTLS(b, send("", body)).URL},
	} {
		b.Run(bc.name, func(b *testing.B) {
			c := newClient(b)
			r := get(bc.url, nil)
			s := &store{}
			r.NewBody = func() (fetch.Body, error) { return s, nil }
			r.Proxy = startForward(b, &forward{}, "http")
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if res := c.Do(b.Context(), r); res.Outcome.Class != crawl.OK {
					b.Fatalf("%+v", res.Outcome)
				}
			}
		})
	}
}
