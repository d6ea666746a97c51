package results_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"holdfast/internal/crawl"
	"holdfast/internal/results"
)

func TestRecordsGivesEachOnceAndPassesOverALineBeingWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lay(t, dir, "pages-w1-0001.jsonl", `{"id":"be`, 1, 2)
	lay(t, dir, "pages-w2-0001.jsonl", "", 2, 3)
	lay(t, dir, "failures-w1-0001.jsonl", "", 4, 1)
	for st, want := range map[results.Stream][]string{
		results.All:      {id(1), id(2), id(3), id(4)},
		results.Pages:    {id(1), id(2), id(3)},
		results.Failures: {id(4), id(1)},
	} {
		var got []string
		for r, err := range results.Records(dir, "docs", 1, st) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", st, got, want)
		}
	}
	for range results.Records(dir, "docs", 1, results.All) {
		break // a consumer may stop
	}
}

func TestRecordsNamesFileAndLineOfWhatIsNoRecordAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lay(t, dir, "pages-w1-0001.jsonl", "hello\n{\"id\":\""+id(7)+"\"}\n", 1)
	var got []string
	var errs []error
	for r, err := range results.Records(dir, "docs", 1, results.All) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, r.ID)
	}
	if !slices.Equal(got, []string{id(1), id(7)}) || len(errs) != 1 || !strings.Contains(errs[0].Error(), "pages-w1-0001.jsonl:2") {
		t.Errorf("records %v, errors %v", got, errs)
	}
	for _, err := range results.Records(dir, "docs", 9, results.All) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a run that is not there: %v", err)
		}
	}
}

func TestTailBeginsWithTheNewestAndFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	at := func(n int) crawl.Record {
		r := record(n, crawl.Completed)
		r.Ended = time.Unix(int64(n), 0).UTC().Format(time.RFC3339)
		return r
	}
	file := ""
	for _, n := range []int{5, 1, 4, 2} {
		file = mustAppend(t, l, at(n))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	for r, err := range results.Tail(ctx, dir, "docs", 1, results.All, results.TailOptions{Last: 2, Follow: true, Every: time.Millisecond}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.ID)
		switch len(got) {
		case 2:
			mustAppend(t, l, at(8))
			mustAppend(t, l, record(9, crawl.Failed))
		case 4: // the file is replaced under the reader
			if err := l.Drop(t.Context(), at(1), file); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, at(10))
		case 5:
			cancel()
		}
	}
	if want := []string{id(4), id(5), id(8), id(9), id(10)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOpenRunDescribesTheRunOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	spec := crawl.DefaultSpec()
	spec.Name, spec.Contact = "docs", "https://example.org/bot"
	spec.Fetch.Headers = map[string]string{"Accept-Language": "de", "Authorization": "Bearer canary-1", "X-Api-Key": "canary-2"}
	m := results.RunMeta{Campaign: "docs", Run: 2, Started: "2026-01-01T00:00:00Z", Source: "urls.txt", Spec: spec, Version: "1.0.0"}
	if err := l.OpenRun(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	folder := results.RunDir(dir, "docs", 2)
	text, err := os.ReadFile(filepath.Join(folder, "campaign.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: docs", "robots: obey", "delay: 1s", "max_retry_after: 24h", "base: 1s", "max_body: 16MiB", "use: pool", "Accept-Language: de"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("campaign.yaml lacks %q:\n%s", want, text)
		}
	}
	var any map[string]any
	if err := yaml.Unmarshal(text, &any); err != nil {
		t.Error(err)
	}
	meta, err := os.ReadFile(filepath.Join(folder, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var back results.RunMeta
	if err := json.Unmarshal(meta, &back); err != nil || back.Source != "urls.txt" || back.Spec.Concurrency != 256 {
		t.Errorf("run.json %s: %v", meta, err)
	}
	if strings.Contains(string(text)+string(meta), "canary") {
		t.Error("a secret header's value is in the results")
	}
	if spec.Fetch.Headers["Authorization"] != "Bearer canary-1" {
		t.Error("the caller's headers were changed")
	}

	m.Source = "another"
	if err := l.OpenRun(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(filepath.Join(folder, "run.json")); string(again) != string(meta) {
		t.Error("run.json was written twice")
	}
	m.Run = 1 // an older run does not take `latest` back
	if err := l.OpenRun(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if n, err := results.LatestRun(dir, "docs"); n != 2 || err != nil {
		t.Errorf("latest %d, %v", n, err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "docs", "latest")); string(text) != "run-0002\n" {
		t.Errorf("latest %q", text)
	}
	if _, err := results.LatestRun(dir, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a campaign that is not there: %v", err)
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"file:///abs/dir":      "file:///abs/dir",
		"file:///abs/../x//y/": "file:///x/y",
		"file://localhost/abs": "file:///abs",
		"/abs/dir":             "file:///abs/dir",
		"file:///with%20space": "file:///with%20space",
	} {
		got, err := results.ParseURL(raw)
		if err != nil || got.String() != want {
			t.Errorf("%q: %v, %v", raw, got, err)
		}
	}
	for raw, hint := range map[string]string{
		"s3://bucket/prefix": `"s3" is not supported, want file:///abs/dir`,
		"file://abs/dir":     "three slashes",
		"file:relative":      "file:///abs/dir",
		"results":            "file:///abs/dir",
		"":                   "file:///abs/dir",
		"file:///a?b=c":      "nothing more",
		"file://u:secret@/a": "nothing more",
	} {
		_, err := results.ParseURL(raw)
		if !errors.Is(err, results.ErrLocation) || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestAWorkersNameIsMadeFitForAFile(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"w1": "w1", "": "worker", "..": "worker", "../../etc": "_.._etc", "a/b\\c": "a_b_c",
		strings.Repeat("x", 100): strings.Repeat("x", 64), "host.example-1": "host.example-1",
	} {
		if got := results.CleanWorker(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestTheSinkDoesNotFollowALinkOutOfItsFolder(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	l := open(t, dir, results.LocalOptions{})
	if err := os.Symlink(outside, filepath.Join(dir, "docs")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), record(1, crawl.Completed)); err == nil {
		t.Error("a record was written through the link")
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("found %v outside", entries)
	}
}
