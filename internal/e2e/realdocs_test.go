package e2e_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/lab"
	"holdfast/internal/results"
)

// Databases of the Redis that HOLDFAST_TEST_REDIS names which these tests empty.
const (
	docsDB  = 11
	demoDB  = 12
	benchDB = 13
)

// TestRealDocsComeOutByteForByte crawls documentation that nobody here wrote,
// with faults mixed in, through proxies, with a real Redis and two workers.
func TestRealDocsComeOutByteForByte(t *testing.T) {
	dir := os.Getenv("HOLDFAST_DOCS_DIR")
	if dir == "" {
		t.Skip("HOLDFAST_DOCS_DIR names no folder of HTML documentation")
	}
	pages := pagesOf(t, dir)
	if len(pages) < 500 {
		t.Fatalf("%s has %d pages, want 500 at least", dir, len(pages))
	}
	s := newStack(t, 10*time.Minute, "--redis", realRedis(t, docsDB))
	workers := []*process{s.worker("w1"), s.worker("w2")}
	s.proxies(6, 4)
	faults := lab.Faults{Rate: 0.2, Seed: "docs"}
	site := s.site(lab.SiteOptions{Files: dir, Faults: faults})
	urls := make([]string, len(pages))
	pageOf := map[string]string{}
	for i, p := range pages {
		urls[i] = site.URL("/files/" + (&url.URL{Path: p}).EscapedPath())
		pageOf[urls[i]] = p
	}
	run := s.start(spec("docs"), urls)
	c := s.finished(run)
	if c.Completed != int64(len(pages)) {
		t.Errorf("counts %+v, want %d completed", c, len(pages))
	}
	s.noLeases()
	records := s.records(run)
	wantAllCompleted(t, records, len(pages))
	runDir := results.RunDir(s.resultsDir(), run.Campaign, run.Run)
	var total, retried, faulty int
	by := map[string]int{}
	for u, r := range records {
		if r.Body == nil {
			t.Errorf("%s has no body", u)
			continue
		}
		want, err := os.ReadFile(filepath.Join(dir, pageOf[u]))
		s.ok(err)
		body, err := results.OpenBody(runDir, *r.Body)
		s.ok(err)
		got, err := io.ReadAll(body)
		s.ok(err)
		s.ok(body.Close())
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes on disk, the file has %d and they differ", u, len(got), len(want))
		}
		total += len(got)
		if len(r.Attempts) > 1 {
			retried++
		}
		if f := faults.Of(pathOf(u)); f != "" && f != lab.FaultSlow {
			faulty++
		}
		worker, _, _ := strings.Cut(r.Attempts[len(r.Attempts)-1].Worker, "/")
		by[worker]++
	}
	if retried < faulty || faulty == 0 {
		t.Errorf("%d pages were retried, %d fail at first", retried, faulty)
	}
	t.Logf("%d pages, %d bytes, %d of them retried; by worker: %v", len(records), total, retried, by)
	for _, w := range workers {
		if code := w.stop(60 * time.Second); code != 0 {
			t.Errorf("%s ends with %d", w.name, code)
		}
	}
}

// pagesOf lists the HTML files under dir, relative to it.
func pagesOf(t *testing.T, dir string) []string {
	t.Helper()
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	err = fs.WalkDir(os.DirFS(root), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(path, ".html") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(pages)
	return pages
}

// realRedis returns the URL of an empty database of a real Redis: the one that
// HOLDFAST_TEST_REDIS names, or a redis-server of the test's own.
func realRedis(t *testing.T, db int) string {
	t.Helper()
	at := os.Getenv("HOLDFAST_TEST_REDIS")
	if at == "" {
		at = ownRedis(t)
	}
	at, _, _ = strings.Cut(at, ",")
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal("HOLDFAST_TEST_REDIS is no URL")
	}
	u.Path = "/" + strconv.Itoa(db)
	opts, err := redis.ParseURL(u.String())
	if err != nil {
		t.Fatal("HOLDFAST_TEST_REDIS is no URL of a Redis")
	}
	rdb := redis.NewClient(opts)
	flush := func() error { return rdb.FlushDB(context.Background()).Err() }
	if err := flush(); err != nil {
		t.Fatalf("empty database %d: %v", db, err)
	}
	t.Cleanup(func() {
		if err := flush(); err != nil {
			t.Errorf("empty database %d: %v", db, err)
		}
		_ = rdb.Close()
	})
	return u.String()
}

// ownRedis starts a redis-server, where one is installed.
func ownRedis(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("HOLDFAST_TEST_REDIS names no Redis, and no redis-server is installed")
	}
	port := freePort(t)
	p := launch(t, "redis-server", io.Discard, path, "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(),
		"--appendonly", "yes", "--maxmemory-policy", "noeviction")
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	defer rdb.Close() //nolint:errcheck // a probe
	poll(t, 20*time.Second, "redis-server answers", func() bool {
		select {
		case <-p.done:
			t.Fatalf("redis-server ended: %s", p.err.String())
		default:
		}
		return rdb.Ping(context.Background()).Err() == nil
	})
	return "redis://127.0.0.1:" + port
}

// freePort returns a port on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only its number is wanted
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
