package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/klauspost/compress/zstd"

	"holdfast/internal/crawl"
)

const (
	// drainMax and drainFor bound what is read of a body that nobody wants, so
	// that its connection can be used again.
	drainMax = 64 << 10
	drainFor = time.Second
	// sniffLen is how much of a body is kept to find its type and charset.
	sniffLen = 1024
	// ratioFrom is how much must be decoded before the ratio counts.
	ratioFrom = 1 << 20
)

// stored is what became of a body.
type stored struct {
	bytes  int64
	sha256 string
}

// readBody streams a page's body, decoded, into the caller's store. It is
// committed only when the last byte has come and the whole of it decoded.
func (x *exchange) readBody(h *hop, res *http.Response) (stored, error) {
	if res.ContentLength > x.lim.MaxWire && h.method != http.MethodHead {
		return stored{}, tooLarge()
	}
	wire := x.wireOf(res.Body)
	defer wire.stop()
	limit := func(r io.Reader) io.Reader {
		return &capped{r: r, wire: wire, max: x.lim.MaxBody, ratio: int64(x.lim.MaxRatio)}
	}
	var encodings []string
	if h.method != http.MethodHead {
		encodings = contentCodings(res.Header.Values("Content-Encoding"))
	}
	dec, err := newDecoder(encodings, x.lim.MaxLayers, wire, limit)
	if err != nil {
		return stored{}, x.bodyFailed(err, wire)
	}
	defer dec.Close()

	into, err := x.openBody(h)
	if err != nil {
		return stored{}, err
	}
	defer into.discard()
	if err := x.copyBody(into, dec, wire); err != nil {
		return stored{bytes: into.n}, err
	}
	x.describe(into.head)
	return into.commit(x)
}

// copyBody reads to the end of the decoded body and then to that of the wire,
// since a coding may end before the connection was cut.
func (x *exchange) copyBody(into *sink, dec io.Reader, wire *wireReader) error {
	buf := x.c.buffers.Get().(*[]byte)
	defer x.c.buffers.Put(buf)
	for {
		n, err := dec.Read(*buf)
		if n > 0 {
			if err := into.write((*buf)[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return x.bodyFailed(err, wire)
		}
		if x.ctx.Err() != nil { // a decoder can go on for long without reading
			return x.bodyFailed(x.ctx.Err(), wire)
		}
	}
	for {
		if _, err := wire.Read(*buf); err == io.EOF {
			return nil
		} else if err != nil {
			return x.bodyFailed(err, wire)
		}
	}
}

// bodyFailed classes an error of reading a body: first why the exchange ended,
// then what happened on the wire, then what the decoder found.
func (x *exchange) bodyFailed(err error, wire *wireReader) error {
	var f *fault
	switch {
	case x.ctx.Err() != nil, errors.As(err, &f), wire.err != nil:
		if wire.err != nil && !errors.As(err, &f) {
			err = wire.err
		}
		return x.failed(err, wireReason)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return tooLarge()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ambiguous(crawl.ReasonTruncated)
	}
	return ambiguous(crawl.ReasonBadEncoding)
}

// wireReason is linkReason for a body: one that ends early was cut short.
func wireReason(err error) crawl.Reason {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return crawl.ReasonTruncated
	}
	return linkReason(err)
}

// drain reads a little of a body that is not kept.
func (x *exchange) drain(res *http.Response) {
	defer func() { _ = res.Body.Close() }()
	x.conns.deadline(time.Now().Add(drainFor))
	n, _ := io.CopyN(io.Discard, res.Body, drainMax)
	x.wire += n
	x.conns.deadline(time.Time{})
}

// sink is where a decoded body goes: the caller's store, or a hash alone.
type sink struct {
	body Body
	sum  hash.Hash
	head []byte
	n    int64
}

func (x *exchange) openBody(h *hop) (*sink, error) {
	if x.req.NewBody == nil || h.method == http.MethodHead {
		return &sink{sum: sha256.New()}, nil
	}
	b, err := x.req.NewBody()
	if err != nil {
		return nil, &storeError{err}
	}
	return &sink{body: b}, nil
}

func (s *sink) write(p []byte) error {
	if room := sniffLen - len(s.head); room > 0 {
		s.head = append(s.head, p[:min(room, len(p))]...)
	}
	s.n += int64(len(p))
	if s.body == nil {
		s.sum.Write(p)
		return nil
	}
	if _, err := s.body.Write(p); err != nil {
		return &storeError{err}
	}
	return nil
}

func (s *sink) commit(x *exchange) (stored, error) {
	if s.body == nil {
		return stored{s.n, hex.EncodeToString(s.sum.Sum(nil))}, nil
	}
	ref, sum, err := s.body.Commit()
	if err != nil {
		return stored{}, &storeError{err}
	}
	s.body = nil
	x.page.Body = &ref
	return stored{s.n, sum}, nil
}

func (s *sink) discard() {
	if s.body != nil {
		s.body.Discard()
	}
}
