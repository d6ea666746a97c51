package frontier

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast/internal/crawl"
)

// MaxLine is the longest input line, in bytes; it holds a request's body too.
const MaxLine = 1 << 20

// maxShown is the number of bad lines that an InputError keeps.
const maxShown = 20

// Defaults fill what a line leaves out.
type Defaults struct {
	// Method of a request without one. Default GET.
	Method string
}

// LineError is one bad line of an input.
type LineError struct {
	File    string
	Line    int
	Problem string
	Hint    string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, &URLError{e.Problem, e.Hint})
}

// InputError is all that is wrong with an input: the first 20 bad lines and how
// many there are.
type InputError struct {
	Lines []*LineError
	Total int
}

// Error shows a line for each bad line.
func (e *InputError) Error() string {
	var b strings.Builder
	for i, l := range e.Lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.Error())
	}
	if more := e.Total - len(e.Lines); more > 0 {
		fmt.Fprintf(&b, "\n… and %d more bad lines", more)
	}
	return b.String()
}

// Unwrap returns the bad lines.
func (e *InputError) Unwrap() []error {
	errs := make([]error, len(e.Lines))
	for i, l := range e.Lines {
		errs[i] = l
	}
	return errs
}

// ParseURLs reads a whole input, name for its errors: plain lines of one URL, or
// JSON objects of the fields of crawl.Request, mixed as one likes. Blank lines,
// lines that start with "#", a byte order mark and CRLF are taken for what they are.
// With any bad line it returns an *InputError and no entry.
func ParseURLs(r io.Reader, name string, d Defaults) ([]Entry, error) {
	var entries []Entry
	err := ScanURLs(r, name, d, func(e Entry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// ScanURLs is ParseURLs for an input of any size: it hands each entry to yield and
// keeps none, so that a caller may check the whole in a first pass and load it in
// batches in a second. After the first bad line it goes on to find the others, but
// yields nothing more. An error of yield ends the scan.
func ScanURLs(r io.Reader, name string, d Defaults, yield func(Entry) error) error {
	lines := &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	var bad InputError
	for n := 1; ; n++ {
		line, tooLong, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		entry, ok, err := parseLine(bytes.TrimSpace(line), tooLong, d)
		if err != nil {
			bad.add(name, n, err)
			continue
		}
		if !ok || bad.Total > 0 {
			continue
		}
		if err := yield(entry); err != nil {
			return err
		}
	}
	if bad.Total > 0 {
		return &bad
	}
	return nil
}

func (e *InputError) add(name string, line int, err error) {
	e.Total++
	if len(e.Lines) >= maxShown {
		return
	}
	l := &LineError{File: name, Line: line, Problem: err.Error()}
	var u *URLError
	if errors.As(err, &u) {
		l.Problem, l.Hint = u.Problem, u.Hint
	}
	e.Lines = append(e.Lines, l)
}

// parseLine reads one trimmed line; ok is false for one that says nothing.
func parseLine(line []byte, tooLong bool, d Defaults) (e Entry, ok bool, err error) {
	switch {
	case tooLong:
		return Entry{}, false, &URLError{"the line is longer than 1 MiB", "one request a line"}
	case len(line) == 0 || line[0] == '#':
		return Entry{}, false, nil
	}
	req := crawl.Request{URL: string(line)}
	if line[0] == '{' {
		if req, err = parseJSON(line); err != nil {
			return Entry{}, false, err
		}
	}
	if req.Method == "" {
		req.Method = d.Method
	}
	e, err = NewEntry(req, 0, "")
	return e, err == nil, err
}

func parseJSON(line []byte) (crawl.Request, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	var r crawl.Request
	if err := dec.Decode(&r); err != nil {
		const fields = "the fields are url, method, headers, body, key, meta"
		// Of the decoder's messages only a field's name is passed on: others quote values.
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) && typ.Field != "" {
			return r, &URLError{fmt.Sprintf("field %q is not of the right type", typ.Field), fields}
		}
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return r, &URLError{"unknown field " + name, fields}
		}
		return r, &URLError{"not a valid JSON object", "one object a line"}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, &URLError{"text after the JSON object", "one object a line"}
	}
	return r, nil
}

// lineReader reads lines without their end, and passes over what is too long.
type lineReader struct {
	r   *bufio.Reader
	buf []byte
}

// next returns a line that is valid until the next call, io.EOF at the end.
func (l *lineReader) next() (line []byte, tooLong bool, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.buf)+len(part) > MaxLine+2 {
			tooLong, l.buf = true, l.buf[:0]
		} else if !tooLong {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if len(part) == 0 && len(l.buf) == 0 && !tooLong {
				return nil, false, io.EOF
			}
			return l.buf, tooLong, nil
		case err != nil:
			return nil, false, err
		}
		return l.buf, tooLong, nil
	}
}
