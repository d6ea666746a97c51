package robots

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// MaxEncoded bounds an entry in Redis, in bytes.
const MaxEncoded = 64 << 10

// An entry is encoded as a line "access status delay-in-ms" and a line for each
// rule, "+/path" or "-/path"; longer ones are deflated. The first byte says which.
const (
	plain    = 'p'
	deflated = 'z'
	// deflateFrom is the size from which deflating is worth it.
	deflateFrom = 512
	// maxDecoded bounds what an entry inflates to: all rules of MaxBytes, each
	// octet of which may have become three.
	maxDecoded = 4 * MaxBytes
)

var errEntry = errors.New("robots: not an entry")

// MarshalBinary encodes e without Left, in at most MaxEncoded bytes. Rules that
// do not fit are shortened so that they forbid more, never less.
func (e Entry) MarshalBinary() ([]byte, error) {
	out := pack(e.text(nil))
	for keep := 256; len(out) > MaxEncoded && keep > 0; keep /= 2 {
		out = pack(e.text(e.Rules.shortened(keep)))
	}
	if len(out) > MaxEncoded {
		return nil, fmt.Errorf("encode entry: %d bytes", len(out))
	}
	return out, nil
}

func (e Entry) text(rules []rule) string {
	delay := int64(-1)
	if d, ok := e.CrawlDelay(); ok {
		delay = d.Milliseconds()
	}
	if rules == nil && e.Rules != nil {
		rules = e.Rules.rules
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %d\n", e.Access, e.Status, delay)
	for _, r := range rules {
		sign := byte('-')
		if r.allow {
			sign = '+'
		}
		b.WriteByte(sign)
		b.WriteString(r.pattern)
		b.WriteByte('\n')
	}
	return b.String()
}

// shortened returns s's rules with patterns of at most keep bytes: a Disallow is
// cut to a prefix, which forbids more; an Allow that is longer is left out.
func (s *Ruleset) shortened(keep int) []rule {
	seen := map[string]bool{}
	out := []rule{}
	for _, r := range s.rules {
		if len(r.pattern) > keep {
			if r.allow {
				continue
			}
			r.pattern = r.pattern[:keep]
			// Half an escape matches nothing.
			if i := strings.LastIndexByte(r.pattern, '%'); i >= 0 && i > keep-3 {
				r.pattern = r.pattern[:i]
			}
		}
		key := r.pattern
		if r.allow {
			key = "+" + key
		}
		if r.pattern != "" && !seen[key] {
			seen[key] = true
			out = append(out, r)
		}
	}
	return out
}

func pack(text string) []byte {
	if len(text) < deflateFrom {
		return append([]byte{plain}, text...)
	}
	var b bytes.Buffer
	b.WriteByte(deflated)
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // a Buffer never fails and the level is a valid one
		return append([]byte{plain}, text...)
	}
	return b.Bytes()
}

// UnmarshalBinary decodes what MarshalBinary made.
func (e *Entry) UnmarshalBinary(data []byte) error {
	text, err := unpack(data)
	if err != nil {
		return err
	}
	head, rest, _ := strings.Cut(text, "\n")
	fields := strings.Fields(head)
	if len(fields) != 3 {
		return errEntry
	}
	status, err1 := strconv.Atoi(fields[1])
	delay, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil {
		return errEntry
	}
	got := Entry{Access: Access(fields[0]), Status: status}
	switch got.Access {
	case Open, Closed:
	case ByRules:
		got.Rules = &Ruleset{}
		if delay >= 0 && delay <= maxDelay.Milliseconds() {
			got.Rules.delay, got.Rules.paced = time.Duration(delay)*time.Millisecond, true
		}
		for line := range strings.Lines(rest) {
			line = strings.TrimSuffix(line, "\n")
			if len(line) < 2 || line[0] != '+' && line[0] != '-' {
				return errEntry
			}
			got.Rules.rules = append(got.Rules.rules, rule{pattern: line[1:], allow: line[0] == '+'})
		}
	default:
		return errEntry
	}
	*e = got
	return nil
}

func unpack(data []byte) (string, error) {
	if len(data) == 0 {
		return "", errEntry
	}
	switch data[0] {
	case plain:
		return string(data[1:]), nil
	case deflated:
		text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), maxDecoded+1))
		if err != nil || len(text) > maxDecoded {
			return "", errEntry
		}
		return string(text), nil
	}
	return "", errEntry
}
