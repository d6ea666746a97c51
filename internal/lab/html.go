package lab

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"html"
	"math/rand/v2"
)

// PageSize is the least size of a page, in bytes.
const PageSize = 20 << 10

const words = "anchor bay current drift ebb fjord gale harbour inlet jetty keel lagoon mooring narrows ocean " +
	"pier quay reef shoal tide undertow vessel wharf yawl kelp holdfast frond blade stipe"

// PageOf returns the HTML page called name ("/ok/7" has "7"): some 20 kB, the
// same at every call, other bytes for every name.
func PageOf(name string) []byte {
	r := rand.New(rand.NewPCG(hash64(name), 1))
	list := bytes.Fields([]byte(words))
	var b bytes.Buffer
	b.Grow(PageSize + 512)
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page %s</title></head>\n<body><h1>Page %[1]s</h1>\n", html.EscapeString(name))
	for b.Len() < PageSize {
		b.WriteString("<p>")
		for range 40 {
			b.Write(list[r.IntN(len(list))])
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "<a href=\"/ok/%d\">on</a></p>\n", r.IntN(1000))
	}
	b.WriteString("</body></html>\n")
	return b.Bytes()
}

func hash64(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	// FNV's high bits move little for short inputs; mix them (splitmix64).
	x := h.Sum64()
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
