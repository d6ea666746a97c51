package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"holdfast/internal/crawl"
)

// chunkSize is how much of a body is gathered before it is compressed: the
// memory a body takes, however large it is. Each chunk is a zstd frame of its
// own (RFC 8878 §3: frames may follow one another), so that one encoder serves all bodies.
const chunkSize = 256 << 10

// NewBody opens the store for one decoded body of a campaign's run. Nothing is
// written to disk before the first chunk is full or the body is committed.
func (l *Local) NewBody(ctx context.Context, campaign string, run int) (Body, error) {
	dir, err := runPath(campaign, run)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &localBody{l: l, run: dir, hash: sha256.New()}, nil
}

// localBody is one body on its way to disk. Used by one goroutine.
type localBody struct {
	l    *Local
	run  string
	hash hash.Hash
	buf  []byte // decoded bytes not yet compressed, at most chunkSize
	zbuf []byte
	f    *os.File // nil until a chunk was full
	tmp  string
	err  error
	done bool
}

var _ Body = (*localBody)(nil)

var errBodyDone = errors.New("results: body is committed or discarded")

func (b *localBody) Write(p []byte) (int, error) {
	if b.done {
		return 0, errBodyDone
	}
	if b.err != nil {
		return 0, b.err
	}
	written := 0
	for len(p) > 0 {
		n := min(chunkSize-len(b.buf), len(p))
		b.buf = append(b.buf, p[:n]...)
		b.hash.Write(p[:n])
		written += n
		p = p[n:]
		if len(b.buf) == chunkSize {
			if b.err = b.flush(); b.err != nil {
				return written, b.err
			}
		}
	}
	return written, nil
}

// flush appends what was gathered to the temporary file, as one frame.
func (b *localBody) flush() error {
	if b.f == nil {
		f, tmp, err := b.l.temp()
		if err != nil {
			return fmt.Errorf("create body: %w", err)
		}
		b.f, b.tmp = f, tmp
	}
	b.zbuf = b.l.enc.EncodeAll(b.buf, b.zbuf[:0])
	b.buf = b.buf[:0]
	if _, err := b.f.Write(b.zbuf); err != nil {
		return fmt.Errorf("write body: %w", err)
	}
	return nil
}

// Commit makes the body durable under its content's name and returns where it
// lies, relative to the run's folder, and its SHA-256 in hex. Content that is
// there already is not written twice.
func (b *localBody) Commit() (crawl.BodyRef, string, error) {
	if b.done {
		return crawl.BodyRef{}, "", errBodyDone
	}
	if b.err != nil {
		err := b.err
		b.Discard()
		return crawl.BodyRef{}, "", err
	}
	sum := hex.EncodeToString(b.hash.Sum(nil))
	name := bodyPath(sum)
	shared, err := b.place(path.Join(b.run, name))
	b.Discard()
	if err != nil {
		return crawl.BodyRef{}, "", err
	}
	b.l.stats.bodies.Add(1)
	if shared {
		b.l.stats.shared.Add(1)
	}
	return crawl.BodyRef{Store: "files", Path: name}, sum, nil
}

// place puts the body at its final name and reports whether it was there already.
func (b *localBody) place(name string) (shared bool, err error) {
	root, dir := b.l.root, path.Dir(name)
	if _, err := root.Stat(name); err == nil {
		// Whoever renamed it may not have come to syncing the folder.
		if err := syncDir(root, dir); err != nil {
			return false, fmt.Errorf("sync body's folder: %w", err)
		}
		return true, nil
	}
	if len(b.buf) > 0 || b.f == nil { // an empty body is one empty frame
		if err := b.flush(); err != nil {
			return false, err
		}
	}
	if err := b.f.Sync(); err != nil {
		return false, fmt.Errorf("sync body: %w", err)
	}
	err = root.Rename(b.tmp, name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = mkdirs(root, dir); err == nil {
			err = root.Rename(b.tmp, name)
		}
	}
	if err != nil {
		return false, fmt.Errorf("name body: %w", err)
	}
	b.tmp = ""
	if err := syncDir(root, dir); err != nil {
		return false, fmt.Errorf("sync body's folder: %w", err)
	}
	return false, nil
}

// Discard removes what was written. A no-op after Commit.
func (b *localBody) Discard() {
	b.done = true
	if b.f != nil {
		_ = b.f.Close()
		b.f = nil
		if b.tmp != "" {
			_ = b.l.root.Remove(b.tmp)
		}
	}
	b.buf, b.zbuf = nil, nil
}

// OpenBody opens a stored body for reading, decoded. runDir is the run's folder,
// see RunDir. A path that is not one of a body's is refused with ErrName; the
// body that is not there, with fs.ErrNotExist. Bodies of any window up to 8 MiB
// are read (RFC 8878 §3.1.1.1.2), so that files recompressed by hand still open.
func OpenBody(runDir string, ref crawl.BodyRef) (io.ReadCloser, error) {
	if ref.Store != "files" {
		return nil, fmt.Errorf("%w: body store %q", ErrName, ref.Store)
	}
	if err := checkBodyPath(ref.Path); err != nil {
		return nil, err
	}
	f, err := os.OpenInRoot(runDir, filepath.FromSlash(ref.Path))
	if err != nil {
		return nil, fmt.Errorf("open body: %w", err)
	}
	dec, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open body: %w", err), f.Close())
	}
	return &bodyReader{Decoder: dec, f: f}, nil
}

type bodyReader struct {
	*zstd.Decoder
	f *os.File
}

func (r *bodyReader) Close() error {
	r.Decoder.Close()
	return r.f.Close()
}
