package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestBadInputIsRefusedWhole runs the programs with what they must refuse: one
// clear error, the exit code of its kind, and nothing written anywhere.
func TestBadInputIsRefusedWhole(t *testing.T) {
	t.Parallel()
	s := newStack(t, 4*time.Minute)
	s.worker("w1")
	s.until("the results are registered", func() bool { at, err := s.frontier.Sink(s.ctx); s.ok(err); return at != "" })
	files := t.TempDir()
	for name, text := range map[string]string{
		"good.txt":    "http://127.0.0.1:1/a\n",
		"far.txt":     "http://127.0.0.1:1/a\nhttps://example.org/\n",
		"bad.txt":     "http://127.0.0.1:1/a\nnot a url\n# a remark\nftp://127.0.0.1/\nhttp://\n",
		"proxies.txt": "10.0.0.1:80\nuser:hunter2@10.0.0.1:port\n10.0.0.3:81:hunter2\n",
	} {
		s.ok(os.WriteFile(filepath.Join(files, name), []byte(text), 0o600))
	}
	dead := "127.0.0.1:" + freePort(t)
	const hidden = "redis://user:hunter2@"
	pid := fmt.Sprint(s.services.cmd.Process.Pid)
	for _, c := range []struct {
		name string
		// program is starter, worker or standalone; $S stands for the flags that
		// name the services, $F for the folder of files, $T for a new folder.
		program, args string
		code          int
		says          []string
	}{
		{"an empty pool", bin.starter, "campaign start $S --name n --urls $F/good.txt", 2, []string{"the pool has no proxy", "proxies import", "--direct"}},
		{"no contact off loopback", bin.starter, "campaign start $S --name n --urls $F/far.txt --direct", 2, []string{"https://example.org/", "--contact"}},
		{"a URL list with bad lines", bin.starter, "campaign start $S --name n --urls $F/bad.txt --direct", 2, []string{"bad.txt:2:", "bad.txt:4:", "bad.txt:5:"}},
		{"a scrape of what is no URL", bin.starter, "scrape $S --direct nonsense", 2, []string{"nonsense"}},
		{"a proxy file with bad lines", bin.starter, "proxies import $S $F/proxies.txt", 2, []string{"proxies.txt:2:", "proxies.txt:3:", "nothing was imported"}},
		{"a Temporal that is not there", bin.starter, "campaign start $S --address " + dead + " --name n --urls $F/good.txt --direct", 3, []string{dead, "--address"}},
		{"a Redis that is not there", bin.starter, "campaign start $S --redis " + hidden + dead + " --name n --urls $F/good.txt --direct", 3, []string{dead, "--redis"}},
		{"an unknown flag of the starter", bin.starter, "campaign list $S --bogus", 2, []string{"--bogus", "--help"}},

		{"a worker without results", bin.worker, "$S", 2, []string{"--results"}},
		{"a worker with other results", bin.worker, "$S --results file://$T/other", 2, []string{"registered", s.resultsDir()}},
		{"a worker with results that are no URL", bin.worker, "$S --results ftp://x/y", 2, []string{"--results"}},
		{"a worker without Temporal", bin.worker, "$S --address " + dead + " --results file://$T/r", 3, []string{dead, "--address"}},
		{"a worker without Redis", bin.worker, "$S --redis " + hidden + dead + " --results file://$T/r", 3, []string{dead, "--redis"}},
		{"an unknown flag of the worker", bin.worker, "$S --bogus", 2, []string{"--bogus"}},

		{"a crawl of a list with bad lines", bin.standalone, "crawl --data $T/d --out $T/o --urls $F/bad.txt --direct", 2, []string{"bad.txt:2:", "bad.txt:4:", "bad.txt:5:"}},
		{"a crawl without contact off loopback", bin.standalone, "crawl --data $T/d --out $T/o --urls $F/far.txt --direct", 2, []string{"https://example.org/", "--contact"}},
		{"a crawl with a bad proxy file", bin.standalone, "crawl --data $T/d --out $T/o --urls $F/good.txt --proxies $F/proxies.txt", 2, []string{"proxies.txt:2:", "proxies.txt:3:"}},
		{"a crawl on a locked directory", bin.standalone, "crawl --data " + s.at.Data + " --out $T/o --urls $F/good.txt --direct", 2, []string{s.at.Data, "process " + pid}},
		{"up on a locked directory", bin.standalone, "up --data " + s.at.Data + " --results $T/o", 2, []string{s.at.Data, "process " + pid}},
		{"up on a folder of something else", bin.standalone, "up --data $F --results $T/o", 2, []string{files, "not a data directory"}},
		{"up with a Redis that is not there", bin.standalone, "up --data $T/d --results $T/o --redis " + hidden + dead, 3, []string{dead, "--redis"}},
		{"up with a Temporal that is not there", bin.standalone, "up --data $T/d --results $T/o --address " + dead, 3, []string{dead, "--address"}},
		{"a demo with a Redis that is not there", bin.standalone, "demo --redis " + hidden + dead, 3, []string{dead, "--redis"}},
		{"up with a log level that is none", bin.standalone, "up --data $T/d --results $T/o --log-level loud", 2, []string{"--log-level"}},
		{"a command where nothing was started", bin.standalone, "campaign list --data $T/d", 3, []string{"$T/d", " up"}},
		{"an unknown flag of the all-in-one", bin.standalone, "crawl --data $T/d --bogus", 2, []string{"--bogus", "--help"}},
		{"an unknown command", bin.standalone, "craw --data $T/d", 2, []string{"craw"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			before, under := content(s.ctx, t, s.redis), tree(t, s.dir, files)
			replace := strings.NewReplacer("$S", "--address "+s.at.Temporal+" --redis "+s.at.Redis, "$F", files, "$T", temp)
			out, said, code := runs(t, c.program, strings.Fields(replace.Replace(c.args))...)
			if code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(said, replace.Replace(want)) {
					t.Errorf("it does not say %q", replace.Replace(want))
				}
			}
			if strings.Contains(out+said, "hunter2") {
				t.Error("it shows a password")
			}
			if out != "" {
				t.Errorf("standard output has %q", out)
			}
			if lines := strings.Split(strings.TrimSpace(said), "\n"); !oneError(lines) {
				t.Errorf("it is not one error and nothing else: %q", lines)
			}
			if after := content(s.ctx, t, s.redis); after != before {
				t.Errorf("Redis was written to: before\n%s\nafter\n%s", before, after)
			}
			if after := tree(t, s.dir, files); !slices.Equal(after, under) {
				t.Errorf("files were written: %v, there were %v", after, under)
			}
			if left := tree(t, temp); len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
			if t.Failed() {
				t.Logf("%s said:\n%s%s", c.args, out, said)
			}
		})
	}
	// The same, with a pool that has proxies of another kind.
	s.importProxies("10.9.9.9:80", 1)
	before := content(s.ctx, t, s.redis)
	_, said, code := runs(t, bin.starter, "campaign", "start", "--address", s.at.Temporal, "--redis", s.at.Redis,
		"--name", "n", "--urls", filepath.Join(files, "good.txt"), "--tag", "gold")
	if code != 2 || !strings.Contains(said, "none of the pool's 1 proxies") {
		t.Errorf("no proxy matches: exit %d, %s", code, said)
	}
	if content(s.ctx, t, s.redis) != before {
		t.Error("no proxy matches: Redis was written to")
	}
	runsOf, err := s.frontier.Runs(s.ctx)
	s.ok(err)
	if len(runsOf) != 0 {
		t.Errorf("runs were made: %+v", runsOf)
	}
}

// oneError tells whether lines are an error and what belongs to it: an error's
// further lines are bad lines of a file, its hint comes last.
func oneError(lines []string) bool {
	for i, l := range lines {
		switch {
		case i == 0 && (strings.HasPrefix(l, "error: ") || strings.HasPrefix(l, "holdfast-worker: ")):
		case i > 0 && (strings.HasPrefix(l, "hint:  ") || strings.HasPrefix(l, "  ") || strings.Contains(l, ".txt:")):
		default:
			return false
		}
	}
	return len(lines) > 0
}

// TestRefusalsOfTheAllInOneLeaveNoRun: what it finds out only once its services
// run is refused as whole.
func TestRefusalsOfTheAllInOneLeaveNoRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := filepath.Join(dir, "urls.txt")
	if err := os.WriteFile(list, []byte("http://127.0.0.1:1/a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data, out := filepath.Join(dir, "data"), filepath.Join(dir, "results")
	_, said, code := runs(t, bin.standalone, "crawl", "--data", data, "--out", out, "--urls", list)
	if code != 2 || !strings.Contains(said, "the pool has no proxy") {
		t.Errorf("an empty pool: exit %d, %s", code, said)
	}
	// Results have a place since then; another one is refused and not made.
	other := filepath.Join(dir, "other")
	_, said, code = runs(t, bin.standalone, "crawl", "--data", data, "--out", other, "--urls", list, "--direct")
	if code != 2 || !strings.Contains(said, out) || !strings.Contains(said, other) {
		t.Errorf("other results: exit %d, %s", code, said)
	}
	if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the refused results folder was made: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := &stack{t: t, ctx: ctx, dir: dir}
	s.services, s.at = up(t, dir, "--no-worker")
	s.connect()
	runsOf, err := s.frontier.Runs(ctx)
	s.ok(err)
	if len(runsOf) != 0 {
		t.Errorf("runs were made: %+v", runsOf)
	}
}

// content is everything in a Redis, as text.
func content(ctx context.Context, t *testing.T, rdb *redis.Client) string {
	t.Helper()
	keys, err := rdb.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		kind, err := rdb.Type(ctx, k).Result()
		if err != nil {
			t.Fatal(err)
		}
		var v any
		switch kind {
		case "string":
			v, err = rdb.Get(ctx, k).Result()
		case "hash":
			v, err = rdb.HGetAll(ctx, k).Result() // fmt sorts a map's keys
		case "list":
			v, err = rdb.LRange(ctx, k, 0, -1).Result()
		case "set":
			var members []string
			members, err = rdb.SMembers(ctx, k).Result()
			slices.Sort(members)
			v = members
		case "zset":
			v, err = rdb.ZRangeWithScores(ctx, k, 0, -1).Result()
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %v\n", k, kind, v)
	}
	return b.String()
}

// tree lists the files and folders under dirs, but for those of the data
// directory, in which its own process writes.
func tree(t *testing.T, dirs ...string) []string {
	t.Helper()
	var all []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil || path == dir:
				return err
			case e.Name() == "data":
				return fs.SkipDir
			}
			all = append(all, path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
