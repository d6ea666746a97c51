package fetch_test

import (
	"bytes"
	"io"
	"net/netip"
	"strings"
	"testing"

	"holdfast/internal/fetch"
)

// FuzzDecoders feeds any bytes to any stack of decoders: whatever comes out stays
// under the cap, and nothing panics.
func FuzzDecoders(f *testing.F) {
	text := []byte(strings.Repeat("kelp ", 300))
	for _, c := range []string{"gzip", "zlib", "flate", "br", "zstd"} {
		name := map[string]string{"zlib": "deflate", "flate": "deflate"}[c]
		if name == "" {
			name = c
		}
		data := encode(f, c, text)
		f.Add(name, data)
		f.Add(name, data[:len(data)/2])
		f.Add(name+",gzip", encode(f, "gzip", data))
		f.Add(name, encode(f, c, make([]byte, 1<<20)))
	}
	f.Add("gzip", []byte{})
	f.Add("zstd", []byte{0x28, 0xb5, 0x2f, 0xfd})
	f.Add("br", []byte{0x5b, 0xff})
	f.Fuzz(func(t *testing.T, codings string, data []byte) {
		const limit = 64 << 10
		d, err := fetch.Decode(strings.Split(codings, ","), bytes.NewReader(data), limit)
		if err != nil {
			return
		}
		defer d.Close()
		if n, _ := io.Copy(io.Discard, d); n > limit {
			t.Errorf("%d bytes came out of a cap of %d", n, limit)
		}
	})
}

// FuzzCanonicalHost holds that canonicalising is stable, that a literal address
// ends up as one, and that what the guard admits is no private literal.
func FuzzCanonicalHost(f *testing.F) {
	for _, s := range []string{
		"example.org", "EXAMPLE.org:8080", "0x7f000001", "0177.1", "127.1", "[::ffff:7f00:1]", "[::1]:80", "a.localhost.",
		"1.2.3.4.5", "256.256.256.256", "bücher.example", "127。0。0。1", "%31", "a@b", "a\\b", "[fe80::1%25eth0]", ".", "..", "xn--", "a..b", "０x7f.1",
	} {
		f.Add(s)
	}
	c := fetch.New(fetch.Options{})
	f.Fuzz(func(t *testing.T, host string) {
		once, ok := fetch.CanonicalHost(host)
		if !ok {
			return
		}
		if twice, ok := fetch.CanonicalHost(once); !ok || twice != once {
			t.Errorf("%q became %q and then %q", host, once, twice)
		}
		got, reason := c.CheckURL("http://"+host+"/", false)
		if reason != "" {
			return
		}
		name := strings.Trim(strings.TrimSuffix(got, ":80"), "[].")
		if a, err := netip.ParseAddr(name); err == nil && !c.AddrAllowed(a, false) {
			t.Errorf("%q was admitted as %q", host, got)
		}
	})
}

// FuzzParseURL holds that what is parsed can stand on a request line.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"http://a/b c?d e#f", "http://a/%zz?%", "http://a/?\x80", "//x", "http://u:p@a/", "http://a/\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := fetch.ParseURL(raw)
		if err != nil || u.Opaque != "" || u.Host == "" {
			return
		}
		for _, b := range []byte(u.RequestURI()) {
			if b <= ' ' || b >= 0x7f {
				t.Fatalf("%q is asked as %q", raw, u.RequestURI())
			}
		}
	})
}
