package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"holdfast/internal/bench"
)

// served runs Serve on pipes, as the benchmark runs it in another process.
func served(t *testing.T, args ...string) (at []string, ask io.WriteCloser, answers *bufio.Reader, ended chan error) {
	t.Helper()
	in, ask := io.Pipe()
	out, say := io.Pipe()
	ended = make(chan error, 1)
	go func() {
		err := bench.Serve(context.Background(), args, in, say)
		_ = say.CloseWithError(io.EOF)
		ended <- err
	}()
	answers = bufio.NewReader(out)
	line, err := answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil {
		t.Fatalf("it said %q: %v", line, err)
	}
	return at, ask, answers, ended
}

func TestServeSaysWhereItIsTellsItsCPUTimeAndEndsWithItsInput(t *testing.T) {
	t.Parallel()
	at, ask, answers, ended := served(t, "site")
	if len(at) != 1 {
		t.Fatalf("it is at %q, want one URL", at)
	}
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := web.Get(at[0] + "/ok/1")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("a page: status %d", res.StatusCode)
	}
	if _, err := io.WriteString(ask, "\n"); err != nil {
		t.Fatal(err)
	}
	line, err := answers.ReadString('\n')
	if n, bad := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err != nil || bad != nil || n <= 0 {
		t.Errorf("its CPU time is %q, %v", line, err)
	}
	_ = ask.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if res, err := web.Get(at[0] + "/ok/1"); err == nil {
		_ = res.Body.Close()
		t.Error("the site answers after its end")
	}
}

func TestServeRunsAsManyProxiesAsAskedFor(t *testing.T) {
	t.Parallel()
	at, ask, _, ended := served(t, "proxies", "3")
	if len(at) != 3 || !strings.HasPrefix(at[0], "http://127.0.0.1:") {
		t.Errorf("proxies %q", at)
	}
	_ = ask.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServeRefusesOtherRoles(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"worker"}, {"proxies"}, {"proxies", "none"}, {"site", "2"}} {
		if bench.Serve(t.Context(), args, strings.NewReader(""), io.Discard) == nil {
			t.Errorf("%q is served", args)
		}
	}
}
