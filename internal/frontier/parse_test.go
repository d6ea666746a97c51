package frontier_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"holdfast/internal/frontier"
)

func parse(in string) ([]frontier.Entry, error) {
	return frontier.ParseURLs(strings.NewReader(in), "urls.txt", frontier.Defaults{})
}

func TestParseURLsTakesLinesAndJSON(t *testing.T) {
	t.Parallel()
	got, err := parse("\xef\xbb\xbf# seeds\r\n\r\nhttp://a.example/?b=1&a=2\r\n" +
		"   https://B.example  \n  # more\n" +
		`{"url":"http://c.example:8080/x","method":"post","body":"q=1","headers":{"X-A":"1"},"key":"k","meta":{"n": 1}}` + "\n" +
		`  {"url":"http://d.example/","meta":null}`)
	must(t, err)
	want := []struct{ url, method, host string }{
		{"http://a.example/?b=1&a=2", "GET", "a.example:80"},
		{"https://B.example", "GET", "b.example:443"},
		{"http://c.example:8080/x", "POST", "c.example:8080"},
		{"http://d.example/", "GET", "d.example:80"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries: %+v", len(got), got)
	}
	for i, w := range want {
		r := got[i].Request
		if r.URL != w.url || r.Method != w.method || got[i].Host != w.host || len(got[i].ID) != 32 {
			t.Errorf("entry %d: %+v", i, got[i])
		}
	}
	if r := got[2].Request; r.Body != "q=1" || r.Headers["X-A"] != "1" || r.Key != "k" || string(r.Meta) != `{"n":1}` {
		t.Errorf("extras: %+v", r)
	}
	if got[3].Request.HasExtras() {
		t.Error("a null meta is an extra")
	}
}

func TestADefaultMethodFillsWhatALineLeavesOut(t *testing.T) {
	t.Parallel()
	in := "http://a.example/\n" + `{"url":"http://a.example/","method":"GET"}`
	got, err := frontier.ParseURLs(strings.NewReader(in), "-", frontier.Defaults{Method: "HEAD"})
	must(t, err)
	if got[0].Request.Method != "HEAD" || got[1].Request.Method != "GET" || got[0].ID == got[1].ID {
		t.Errorf("%+v", got)
	}
}

func TestParseURLsNamesTheBadLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ line, want string }{
		"no scheme":             {"example.org/page", "write it in full"},
		"a relative one":        {"/page", "write it in full"},
		"another scheme":        {"ftp://example.org/", "the scheme is not http or https"},
		"no host":               {"http://", "not a valid URL"},
		"no slashes":            {"http:example.org", "not a valid URL"},
		"a third slash":         {"http:///example.org", "not a valid URL"},
		"a port out of range":   {"http://example.org:70000/", "not a valid URL"},
		"white space within":    {"http://example.org/a b", "white space"},
		"two in a line":         {"http://a.example/ http://b.example/", "white space"},
		"a control character":   {"http://a.example/\x01", "control character"},
		"not UTF-8":             {"http://a.example/\xe4", "not UTF-8"},
		"a password":            {"http://me:hunter2@a.example/", "user name or password"},
		"too long":              {"http://a.example/" + strings.Repeat("x", frontier.MaxURL), "longer than 8 KiB"},
		"a line of a megabyte":  {strings.Repeat("x", frontier.MaxLine+3), "longer than 1 MiB"},
		"an unknown field":      {`{"url":"http://a.example/","depth":1}`, `unknown field "depth"`},
		"a wrong type":          {`{"url":7}`, `field "url" is not of the right type`},
		"cut JSON":              {`{"url":"http://a.example/"`, "not a valid JSON object"},
		"two objects":           {`{"url":"http://a.example/"} {}`, "text after the JSON object"},
		"no URL":                {`{"method":"GET"}`, "no URL"},
		"meta over 1 KiB":       {`{"url":"http://a.example/","meta":"` + strings.Repeat("x", 1023) + `"}`, "meta is larger than 1 KiB"},
		"a method of two words": {`{"url":"http://a.example/","method":"GET /"}`, "method is not a word"},
		"CONNECT":               {`{"url":"http://a.example/","method":"connect"}`, "CONNECT is not allowed"},
		"a header's line end":   {`{"url":"http://a.example/","headers":{"X":"a\r\nY: b"}}`, "value of header X"},
		"a header's name":       {`{"url":"http://a.example/","headers":{"X Y":"a"}}`, "header's name"},
		"a proxy's header":      {`{"url":"http://a.example/","headers":{"proxy-authorization":"a"}}`, "not the request's to set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse("http://ok.example/\n\n" + tc.line + "\nhttp://ok.example/2\n")
			var l *frontier.LineError
			if !errors.As(err, &l) || got != nil {
				t.Fatalf("%v, %v", got, err)
			}
			if l.File != "urls.txt" || l.Line != 3 || !strings.HasPrefix(err.Error(), "urls.txt:3: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v; want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes a password: %v", err)
			}
		})
	}
}

func TestMetaOfExactlyOneKiBIsTaken(t *testing.T) {
	t.Parallel()
	if _, err := parse(`{"url":"http://a.example/","meta":"` + strings.Repeat("x", 1022) + `"}`); err != nil {
		t.Error(err)
	}
}

func TestAllBadLinesAreCountedAndTwentyShown(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	for i := range 100 {
		fmt.Fprintf(&in, "http://ok.example/%d\nbad%d\n", i, i)
	}
	got, err := parse(in.String())
	var bad *frontier.InputError
	if !errors.As(err, &bad) || got != nil || bad.Total != 100 || len(bad.Lines) != 20 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	if bad.Lines[19].Line != 40 || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "and 80 more bad lines") {
		t.Errorf("%v", err)
	}
}

func TestNothingIsYieldedAfterABadLineNorAfterAnErrorOfTheCaller(t *testing.T) {
	t.Parallel()
	n := 0
	count := func(frontier.Entry) error { n++; return nil }
	err := frontier.ScanURLs(strings.NewReader("http://a.example/\nbad\nhttp://b.example/"), "f", frontier.Defaults{}, count)
	if n != 1 || err == nil {
		t.Errorf("%d yielded, %v", n, err)
	}
	stop := errors.New("stop")
	err = frontier.ScanURLs(strings.NewReader("http://a.example/\nhttp://b.example/"), "f", frontier.Defaults{},
		func(frontier.Entry) error { n++; return stop })
	if n != 2 || !errors.Is(err, stop) {
		t.Errorf("%d yielded, %v", n, err)
	}
}

// numbered yields n lines and holds none of them.
type numbered struct {
	n, i int
	rest string
}

func (r *numbered) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.i == r.n {
			return 0, io.EOF
		}
		r.rest = fmt.Sprintf("http://host%d.example/page/%d\n", r.i%50, r.i)
		r.i++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestTheTimeOfAScanGrowsWithItsLines(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	scan := func(lines int) time.Duration {
		began, n := time.Now(), 0
		err := frontier.ScanURLs(&numbered{n: lines}, "f", frontier.Defaults{}, func(frontier.Entry) error { n++; return nil })
		if err != nil || n != lines {
			t.Fatalf("%d of %d lines, %v", n, lines, err)
		}
		return time.Since(began)
	}
	// Quadratic work would make ten times the lines a hundred times as slow; 40 leaves
	// room for a busy machine.
	small := scan(20_000)
	if large := scan(200_000); large > 40*small {
		t.Errorf("20,000 lines took %v, 200,000 took %v", small, large)
	}
}

func FuzzParseURLs(f *testing.F) {
	for _, s := range []string{
		"http://a.example/", "# c", "", `{"url":"http://a.example/","meta":{"a":1}}`, "{", "\xef\xbb\xbfhttp://a/", "http:///x", "http://a\\b",
		`{"url":"http://a.example/","method":"PUT","headers":{"A":"b"}}`, "http://[::1]/\r", "http://0x7f.1:080/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parse(line)
		if err != nil {
			var in *frontier.InputError
			if !errors.As(err, &in) || got != nil || in.Total < 1 {
				t.Fatalf("%v, %v", got, err)
			}
			return
		}
		for _, e := range got {
			id, err := frontier.Fingerprint(e.Request)
			if err != nil || id != e.ID || e.Host == "" {
				t.Fatalf("%+v: %s, %v", e, id, err)
			}
			if strings.ContainsAny(e.Request.URL+e.Host+e.Request.Method, "\t\r\n") {
				t.Fatalf("a separator in %+v", e)
			}
		}
	})
}
