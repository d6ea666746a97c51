package frontier_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

func TestScriptsKeepToWhatEveryBackendDoesAlike(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("scripts/*.lua")
	must(t, err)
	if len(files) < 10 {
		t.Fatalf("%d scripts", len(files))
	}
	forbidden := regexp.MustCompile(`(?i)\b(math\.random|spop|srandmember|h?scan|os\.time|keys\s*\*)\b|[^i]pairs\(`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		if m := forbidden.FindString(string(b)); m != "" {
			t.Errorf("%s uses %s", f, m)
		}
		if filepath.Base(f) == "lib.lua" {
			continue
		}
		for _, part := range []string{"-- ARGV", "-- OUT", "-- HOLDS"} {
			if !strings.Contains(string(b), part) {
				t.Errorf("%s: no %q in its header", f, part)
			}
		}
	}
}

func TestARunHasAFixedSetOfKeysUnderOneTag(t *testing.T) {
	t.Parallel()
	b := onMiniredis(t)
	ctx := context.Background()
	run := b.start(t, "http://first.example/")
	use := func(from, to int) int {
		for i := from; i < to; i++ {
			host := fmt.Sprintf("h%d.example", i)
			es := entries(t, urls(host, 4)...)
			es[0].Request.Body = "x"
			_, err := b.Add(ctx, run, es)
			must(t, err)
			c := b.claim(t, run, 2, host+":80")
			must(t, b.Park(ctx, run, frontier.Parked{ID: c[0].ID, Why: crawl.WaitBackoff, Wait: time.Hour}))
			_, err = b.Ack(ctx, run, frontier.Ack{ID: c[1].ID, State: crawl.Failed, Reason: "x"})
			must(t, err)
		}
		_, err := b.SkipQueued(ctx, run, "x", 1)
		must(t, err)
		n := 0
		for _, k := range b.keys(t) {
			switch {
			case strings.HasPrefix(k, b.prefix+":f:{docs-1}:"):
				n++
			case !strings.HasPrefix(k, b.prefix+":reg:{reg}:"):
				t.Errorf("key %s", k)
			}
		}
		return n
	}
	few := use(0, 2)
	if many := use(2, 60); many != few || many > 12 {
		t.Errorf("%d keys with two hosts, %d with sixty", few, many)
	}
}
