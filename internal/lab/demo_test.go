package lab_test

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/lab"
)

func demo(t *testing.T) *lab.Demo {
	t.Helper()
	d, err := lab.NewDemo(lab.DemoOptions{Password: "canary"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestTheDemoChecksEveryURL(t *testing.T) {
	t.Parallel()
	d := demo(t)
	right := make(map[string]lab.End)
	for _, e := range d.Expected {
		right[e.URL] = lab.End{State: e.State, Reason: e.Reason}
	}
	if err := d.Check(right); err != nil {
		t.Error(err)
	}
	urls := d.URLs()
	if len(urls) != len(right) || len(urls) < 40 || len(urls) > 60 {
		t.Errorf("%d URLs, %d ends", len(urls), len(right))
	}
	for name, change := range map[string]func(map[string]lab.End){
		"no record":           func(m map[string]lab.End) { delete(m, urls[0]) },
		"was never asked for": func(m map[string]lab.End) { m["http://127.0.0.1:1/"] = lab.End{State: crawl.Completed} },
		"expected":            func(m map[string]lab.End) { m[urls[1]] = lab.End{State: crawl.Failed, Reason: "http_418"} },
	} {
		wrong := maps.Clone(right)
		change(wrong)
		if err := d.Check(wrong); err == nil || !strings.Contains(err.Error(), name) || strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheDemoHasEveryKindOfProxyAndPage(t *testing.T) {
	t.Parallel()
	d := demo(t)
	lines := strings.Split(strings.TrimSpace(d.ProxyLines()), "\n")
	if len(lines) != len(d.Proxies) || len(lines) < 6 {
		t.Errorf("lines %q", lines)
	}
	for _, line := range lines {
		if u, err := url.Parse(line); err != nil || u.Port() == "" {
			t.Errorf("line %q: %v", line, err)
		}
	}
	kinds := map[string]bool{}
	ends := map[string]bool{}
	for _, e := range d.Expected {
		kinds[e.Kind] = true
		ends[lab.End{State: e.State, Reason: e.Reason}.String()] = true
	}
	for _, want := range []string{"completed", "failed http_404", "failed blocked", "failed too_large", "failed retries_exhausted"} {
		if !ends[want] {
			t.Errorf("no URL ends as %s", want)
		}
	}
	if len(kinds) < 10 {
		t.Errorf("kinds %v", slices.Sorted(maps.Keys(kinds)))
	}
}

// What the demo expects is what its sites give to a patient client through a
// good proxy.
func TestTheDemosSitesBearOutItsExpectations(t *testing.T) {
	t.Parallel()
	d := demo(t)
	c := client(t, d.Proxies[2].URL(), nil)
	c.CheckRedirect = nil
	got := make(map[string]lab.End)
	for _, u := range d.URLs() {
		got[u] = patient(t, c, u, d.Spec())
	}
	if err := d.Check(got); err != nil {
		t.Error(err)
	}
}

func patient(t *testing.T, c *http.Client, u string, s crawl.Spec) lab.End {
	t.Helper()
	for range s.Retry.MaxAttempts {
		resp, err := c.Get(u)
		if err != nil {
			continue
		}
		n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, s.Fetch.MaxBody+1))
		_ = resp.Body.Close()
		switch {
		case n > s.Fetch.MaxBody:
			return lab.End{State: crawl.Failed, Reason: crawl.ReasonTooLarge}
		case resp.StatusCode == 403:
			return lab.End{State: crawl.Failed, Reason: crawl.ReasonBlocked}
		case resp.StatusCode == 404:
			return lab.End{State: crawl.Failed, Reason: crawl.HTTPReason(404)}
		case resp.StatusCode == 200 && err == nil:
			return lab.End{State: crawl.Completed}
		}
	}
	return lab.End{State: crawl.Failed, Reason: crawl.ReasonRetriesExhausted}
}
