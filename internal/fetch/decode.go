package fetch

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow is the largest window that RFC 9659 allows for Content-Encoding.
const zstdWindow = 8 << 20

var errCoding = errors.New("fetch: unknown content coding")

// contentCodings returns the codings of Content-Encoding headers in the order in
// which they were applied (RFC 9110 §8.4), without those that change nothing.
// "none" and "utf-8" are servers' mistakes that browsers read as identity too.
func contentCodings(values []string) []string {
	var out []string
	for _, v := range values {
		for _, c := range strings.Split(v, ",") {
			switch c = strings.ToLower(strings.TrimSpace(c)); c {
			case "", "identity", "none", "utf-8":
			default:
				out = append(out, c)
			}
		}
	}
	return out
}

// newDecoder returns r decoded through codings, last one first. Each layer's
// output passes limit, so that no layer can blow up unseen below another. An
// empty body is empty under any coding.
func newDecoder(codings []string, maxLayers int, r io.Reader, limit func(io.Reader) io.Reader) (io.ReadCloser, error) {
	if len(codings) > maxLayers {
		return nil, tooLarge()
	}
	d := &layers{Reader: limit(r)}
	if len(codings) == 0 {
		return d, nil
	}
	in := bufio.NewReader(r)
	if _, err := in.Peek(1); err == io.EOF {
		d.Reader = strings.NewReader("")
		return d, nil
	}
	d.Reader = in
	for _, c := range slices.Backward(codings) {
		out, err := d.layer(c, d.Reader)
		if err != nil {
			_ = d.Close()
			return nil, err
		}
		d.Reader = limit(out)
	}
	return d, nil
}

// layers is a stack of decoders.
type layers struct {
	io.Reader
	closers []func()
}

func (d *layers) Close() error {
	for _, c := range slices.Backward(d.closers) {
		c()
	}
	d.closers = nil
	return nil
}

func (d *layers) layer(coding string, r io.Reader) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return inflate(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		d.closers = append(d.closers, z.Close)
		return z, nil
	}
	return nil, errCoding
}

// inflate reads "deflate" as RFC 9110 §8.4.1.2 means it, in a zlib wrapper, and as
// many servers send it, without one.
func inflate(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil
}

// capped ends a layer's output at max bytes, or when it is more than ratio times
// what came over the wire.
type capped struct {
	r     io.Reader
	wire  *wireReader
	n     int64
	max   int64
	ratio int64
}

func (c *capped) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.n > c.max || c.n > ratioFrom && c.n > c.ratio*c.wire.n {
		return 0, tooLarge()
	}
	return n, err
}
