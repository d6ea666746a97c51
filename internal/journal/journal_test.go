package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"holdfast/internal/journal"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("HOLDFAST_JOURNAL_CHILD"); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, dir string, opts journal.Options) *journal.Server {
	t.Helper()
	if opts.OnError == nil {
		opts.OnError = func(err error) { t.Errorf("in the background: %v", err) }
	}
	s, err := journal.Open(dir, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func dial(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, MaxRetries: -1, ReadTimeout: 30 * time.Second})
	t.Cleanup(func() { c.Close() })
	return c
}

func deadlined(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// copyDir is what a crash would leave at this moment. Nothing may be written
// meanwhile, but a compaction may run: a copy that it changed under is taken again.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	for range 1000 {
		files, err := readDir(from)
		if err == nil {
			var again map[string]string
			if again, err = readDir(from); err == nil && maps.Equal(files, again) {
				for name, data := range files {
					if err := os.WriteFile(filepath.Join(to, name), []byte(data), 0o600); err != nil {
						t.Fatalf("copy directory: %v", err)
					}
				}
				return to
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("copy directory: %v", err)
		}
	}
	t.Fatal("the directory does not come to rest")
	return ""
}

func readDir(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files[e.Name()] = string(data)
	}
	return files, nil
}

// state is all that a client can see, one line a key.
func state(t testing.TB, c *redis.Client) []string {
	t.Helper()
	ctx := deadlined(t)
	keys, err := c.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatalf("keys: %v", err)
	}
	slices.Sort(keys)
	lines := make([]string, 0, len(keys))
	for _, k := range keys {
		var v any
		kind, err := c.Type(ctx, k).Result()
		if err == nil {
			switch kind {
			case "string":
				v, err = c.Get(ctx, k).Result()
			case "hash":
				var m map[string]string
				m, err = c.HGetAll(ctx, k).Result()
				var fields []string
				for _, f := range slices.Sorted(maps.Keys(m)) {
					ttl := c.Do(ctx, "HPTTL", k, "FIELDS", 1, f).Val()
					fields = append(fields, fmt.Sprintf("%q=%q ttl %v", f, m[f], ttl))
				}
				v = fields
			case "list":
				v, err = c.LRange(ctx, k, 0, -1).Result()
			case "set":
				var m []string
				m, err = c.SMembers(ctx, k).Result()
				slices.Sort(m)
				v = m
			case "zset":
				v, err = c.ZRangeWithScores(ctx, k, 0, -1).Result()
			}
		}
		if err != nil {
			t.Fatalf("read %q: %v", k, err)
		}
		lines = append(lines, fmt.Sprintf("%s %s %q ttl %v", kind, k, v, c.PTTL(ctx, k).Val()))
	}
	return lines
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s:\ngot\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
