package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// seeds is a list of requests that was read once to its end and found good. It
// keeps no entry: whatever its size, each pass reads it anew.
type seeds struct {
	// label names the input for people: "urls.txt".
	label  string
	open   func() (io.ReadCloser, error)
	total  int
	digest string
	// outside is the first URL that is not on loopback, inside the first that is.
	outside string
	inside  string
	// temp is the file that holds standard input.
	temp string
}

func (in *seeds) loopbackOnly() bool { return in.outside == "" && in.inside != "" }

// close removes what was kept of standard input.
func (in *seeds) close() {
	if in.temp != "" {
		_ = os.Remove(in.temp) // in the system's folder for such files
	}
}

// readSeeds reads and checks a whole list of URLs; "-" is standard input, which is
// kept in a file of its own until close, so that it can be read twice.
func (a *App) readSeeds(ctx context.Context, path string) (*seeds, error) {
	in := &seeds{label: filepath.Base(path)}
	if path == "-" {
		in.label = "standard input"
		if err := in.keep(a.env.Stdin); err != nil {
			return nil, err
		}
		path = in.temp
	}
	in.open = func() (io.ReadCloser, error) { return os.Open(path) }
	if err := in.check(ctx); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// keep writes r to a temporary file.
func (in *seeds) keep(r io.Reader) error {
	f, err := os.CreateTemp("", "holdfast-urls-")
	if err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	in.temp = f.Name()
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Close()); err != nil {
		in.close()
		return fmt.Errorf("keep standard input: %w", err)
	}
	return nil
}

// check is the first pass.
func (in *seeds) check(ctx context.Context) error {
	digest, err := in.each(func(e frontier.Entry) error {
		in.total++
		if onLoopback(e.Host) {
			in.inside = or(in.inside, e.Request.URL)
		} else {
			in.outside = or(in.outside, e.Request.URL)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	in.digest = digest
	if in.total == 0 {
		return badInput("write one URL a line", "%s holds no URL", in.label)
	}
	return nil
}

// each reads the list and gives each entry; it returns the digest of all of them.
func (in *seeds) each(yield func(frontier.Entry) error) (digest string, err error) {
	r, err := in.open()
	if err != nil {
		return "", noFile(in.label, err)
	}
	defer r.Close() //nolint:errcheck // only read
	h := sha256.New()
	err = frontier.ScanURLs(r, in.label, frontier.Defaults{}, func(e frontier.Entry) error {
		if err := digestEntry(h, e); err != nil {
			return err
		}
		return yield(e)
	})
	var bad *frontier.InputError
	if errors.As(err, &bad) {
		return "", badInput(or(bad.Lines[0].Hint, "nothing was written; mend the list and run the same command again"), "%s", bad.Error())
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// digestEntry adds a request to the input's digest, as it is asked.
func digestEntry(h hash.Hash, e frontier.Entry) error {
	b, err := json.Marshal(struct {
		ID string `json:"id"`
		crawl.Request
	}{e.ID, e.Request})
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	h.Write(b)
	h.Write([]byte{'\n'})
	return nil
}

// urlSeeds is a list given on the command line.
func urlSeeds(ctx context.Context, urls []string) (*seeds, []frontier.Entry, error) {
	in := &seeds{label: "command line"}
	entries := make([]frontier.Entry, 0, len(urls))
	for _, u := range urls {
		e, err := entryOf(crawl.Request{URL: u})
		if err != nil {
			return nil, nil, badURL(u, err)
		}
		entries = append(entries, e)
	}
	text := []byte{}
	for _, u := range urls {
		line, err := json.Marshal(crawl.Request{URL: u})
		if err != nil {
			return nil, nil, fmt.Errorf("encode request: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	in.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return in, entries, in.check(ctx)
}

// entryOf checks one request.
func entryOf(r crawl.Request) (frontier.Entry, error) { return frontier.NewEntry(r, 0, "") }

// badURL refuses a URL of the command line; a password in it is not shown.
func badURL(raw string, err error) error {
	hint := "give it as it stands in the list, with its scheme: https://example.org/page"
	problem := err.Error()
	var u *frontier.URLError
	if errors.As(err, &u) {
		problem, hint = u.Problem, or(u.Hint, hint)
	}
	shown := "the URL given"
	if parsed, err := url.Parse(raw); err == nil {
		shown = oneLine(parsed.Redacted())
	}
	return badInput(hint, "%s: %s", shown, problem)
}

// noFile says which file cannot be read.
func noFile(label string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return badInput("check the file's name, or give - for standard input", "%s cannot be read: %s", label, err)
}
