package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/journal"
)

func segment(dir string) string { return filepath.Join(dir, "journal-0001") }

func TestATornTailIsCutAtEveryByte(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, open(t, dir, journal.Options{}).Addr())
	ctx := deadlined(t)
	c.Set(ctx, "before", "1", 0)
	kept, err := os.ReadFile(segment(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Eval(ctx, pair, []string{"h", "l"}, "v").Err(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(segment(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(whole) <= len(kept) {
		t.Fatal("the script made no record")
	}
	damaged := map[string][]byte{}
	for n := len(kept); n < len(whole); n++ {
		damaged[fmt.Sprintf("cut at %d", n)] = whole[:n]
		flipped := append([]byte(nil), whole...)
		flipped[n] ^= 0x40
		damaged[fmt.Sprintf("bit flipped in %d", n)] = flipped
	}
	damaged["zeros"] = append(append([]byte(nil), kept...), make([]byte, 4096)...)
	for name, data := range damaged {
		dir := t.TempDir()
		if err := os.WriteFile(segment(dir), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := journal.Open(dir, journal.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c := redis.NewClient(&redis.Options{Addr: s.Addr(), DisableIdentity: true})
		if got := s.Restored(); got.Records != 1 || got.Cut != int64(len(data)-len(kept)) {
			t.Errorf("%s: %+v", name, got)
		}
		if c.Get(ctx, "before").Val() != "1" || c.Exists(ctx, "h", "l").Val() != 0 {
			t.Errorf("%s: a part of the torn record was applied", name)
		}
		c.Set(ctx, "after", "1", 0)
		again := copyDir(t, dir)
		c.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, err = journal.Open(again, journal.Options{})
		if err != nil {
			t.Fatalf("%s: after going on: %v", name, err)
		}
		if got := s.Restored(); got.Keys != 2 || got.Cut != 0 {
			t.Errorf("%s: after going on: %+v", name, got)
		}
		s.Close()
	}
}

func TestATornTailBeforeASegmentThatWasNotBegunIsCut(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	c := dial(t, open(t, made, journal.Options{}).Addr())
	ctx := deadlined(t)
	c.Set(ctx, "a", "1", 0)
	c.Set(ctx, "b", "1", 0)
	whole, err := os.ReadFile(segment(made))
	if err != nil {
		t.Fatal(err)
	}
	for _, begun := range []string{"", "hfj", "hfjrnl1\n"} {
		dir := t.TempDir()
		next := filepath.Join(dir, "journal-0002")
		if err := errors.Join(os.WriteFile(segment(dir), whole[:len(whole)-3], 0o600), os.WriteFile(next, []byte(begun), 0o600)); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, journal.Options{CompactEvery: 3})
		if got := s.Restored(); got.Records != 1 || got.Cut == 0 {
			t.Errorf("%q: %+v", begun, got)
		}
		c := dial(t, s.Addr())
		for i := range 10 {
			c.Set(ctx, fmt.Sprint(i), "v", 0)
		}
		want := state(t, c)
		same(t, "gone on", state(t, dial(t, open(t, copyDir(t, dir), journal.Options{}).Addr())), want)
	}
}

func TestDamageBeforeTheTailIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	c := dial(t, open(t, made, journal.Options{}).Addr())
	ctx := deadlined(t)
	for i := range 10 {
		c.Set(ctx, fmt.Sprint(i), "v", 0)
	}
	journaled, _ := os.ReadFile(segment(made))
	snap := t.TempDir()
	s := open(t, snap, journal.Options{})
	dial(t, s.Addr()).Set(ctx, "k", "v", 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	snapshot, err := os.ReadFile(filepath.Join(snap, "snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string][]byte{
		"a segment is missing":           {"journal-0001": journaled, "journal-0003": journaled},
		"a segment before the last":      {"journal-0001": journaled[:len(journaled)-1], "journal-0002": []byte("hfjrnl1\nrecords")},
		"records repeat":                 {"journal-0001": journaled, "journal-0002": journaled},
		"the snapshot has no end":        {"snapshot": snapshot[:len(snapshot)-1]},
		"the snapshot is of a later one": {"snapshot": []byte("hfsnap9\nabc")},
		"the journal is of a later one":  {"journal-0001": []byte("hfjrnl9\nabc")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for f, data := range files {
				if err := os.WriteFile(filepath.Join(dir, f), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if s, err := journal.Open(dir, journal.Options{}); !errors.Is(err, journal.ErrCorrupt) {
				if err == nil {
					s.Close()
				}
				t.Fatalf("open says %v", err)
			}
			for f, data := range files {
				if now, err := os.ReadFile(filepath.Join(dir, f)); err != nil || string(now) != string(data) {
					t.Errorf("%s was changed", f)
				}
			}
		})
	}
}

// wall is a clock that the test moves.
type wall struct{ ns atomic.Int64 }

func (w *wall) now() time.Time      { return time.Unix(0, w.ns.Load()) }
func (w *wall) add(d time.Duration) { w.ns.Add(int64(d)) }
func startAt(t time.Time) (w *wall) { w = &wall{}; w.ns.Store(t.UnixNano()); return w }

func TestDeadlinesStandOverACrashAndACleanStop(t *testing.T) {
	t.Parallel()
	for name, clean := range map[string]bool{"after a crash": false, "after a clean stop": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := startAt(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			dir := t.TempDir()
			s := open(t, dir, journal.Options{Now: clock.now})
			c := dial(t, s.Addr())
			ctx := deadlined(t)
			c.Set(ctx, "ten", "v", 10*time.Second)
			c.HSet(ctx, "h", "f", "v", "g", "v")
			c.Do(ctx, "HEXPIRE", "h", 20, "FIELDS", 1, "f")
			c.Eval(ctx, `redis.call('SET', KEYS[1], 'v', 'PX', '30000') return 1`, []string{"thirty"})
			clock.add(4 * time.Second)
			if d := c.PTTL(ctx, "ten").Val(); d != 6*time.Second {
				t.Fatalf("after 4 s, ten has %v", d)
			}
			if clean {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			clock.add(3 * time.Second)
			c = dial(t, open(t, copyDir(t, dir), journal.Options{Now: clock.now}).Addr())
			if d := c.PTTL(ctx, "ten").Val(); d != 3*time.Second {
				t.Errorf("after 7 s, ten has %v", d)
			}
			if d := c.PTTL(ctx, "thirty").Val(); d != 23*time.Second {
				t.Errorf("after 7 s, thirty has %v", d)
			}
			clock.add(3 * time.Second)
			if c.Exists(ctx, "ten").Val() != 0 || !c.HExists(ctx, "h", "f").Val() {
				t.Error("after 10 s, ten must be gone and the field be there")
			}
			clock.add(10 * time.Second)
			if c.HExists(ctx, "h", "f").Val() || !c.HExists(ctx, "h", "g").Val() {
				t.Error("after 20 s, the field must be gone and the other be there")
			}
			clock.add(time.Hour)
			if n := c.DBSize(ctx).Val(); n != 1 {
				t.Errorf("after an hour %d keys are left", n)
			}
		})
	}
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := startAt(start)
	dir := t.TempDir()
	c := dial(t, open(t, dir, journal.Options{Now: clock.now}).Addr())
	ctx := deadlined(t)
	c.Set(ctx, "k", "v", time.Minute)
	clock.add(-time.Hour)
	if got := c.Time(ctx).Val(); got.Before(start) {
		t.Errorf("stepped back, TIME is %v", got)
	}
	again := dial(t, open(t, copyDir(t, dir), journal.Options{Now: clock.now}).Addr())
	if got := again.Time(ctx).Val(); got.Before(start) {
		t.Errorf("restarted, TIME is %v", got)
	}
	clock.add(2 * time.Minute) // still behind
	if again.Exists(ctx, "k").Val() != 0 {
		t.Error("restarted behind, a deadline does not come")
	}
	clock.add(-2 * time.Minute)
	clock.add(2 * time.Hour)
	if got := again.Time(ctx).Val(); !got.Equal(start.Add(time.Hour)) {
		t.Errorf("caught up, TIME is %v", got)
	}
}

func TestCompactionUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, journal.Options{CompactEvery: 100})
	c := dial(t, s.Addr())
	ctx := deadlined(t)
	var wg sync.WaitGroup
	const writers, each = 4, 600
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := c.HSet(ctx, fmt.Sprintf("h%d", i%7), fmt.Sprintf("%d/%d", w, i), i).Err(); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				c.RPush(ctx, "l", i)
			}
		})
	}
	wg.Wait()
	want := state(t, c)
	crashed := open(t, copyDir(t, dir), journal.Options{})
	same(t, "after a crash", state(t, dial(t, crashed.Addr())), want)
	if got := crashed.Restored(); got.Records > writers*each {
		t.Errorf("%d records were replayed of %d: nothing was compacted", got.Records, 2*writers*each)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clean := open(t, dir, journal.Options{})
	same(t, "after a clean stop", state(t, dial(t, clean.Addr())), want)
	if got := clean.Restored(); got.Records != 0 || got.Cut != 0 {
		t.Errorf("after a clean stop: %+v", got)
	}
}

func TestADirectoryIsOpenedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, journal.Options{})
	if _, err := journal.Open(dir, journal.Options{}); !errors.Is(err, journal.ErrLocked) {
		t.Fatalf("the second open says %v", err)
	}
}

func TestTimeMovesInStepsWhileAKeyHasADeadline(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := startAt(start)
	c := dial(t, open(t, t.TempDir(), journal.Options{Now: clock.now, Resolution: 5 * time.Millisecond}).Addr())
	ctx := deadlined(t)
	clock.add(time.Millisecond)
	if got := c.Time(ctx).Val().Sub(start); got != time.Millisecond {
		t.Errorf("without a deadline TIME moved %v", got)
	}
	c.Set(ctx, "k", "v", time.Minute)
	clock.add(4 * time.Millisecond)
	if got := c.Time(ctx).Val().Sub(start); got != time.Millisecond {
		t.Errorf("within a step TIME moved %v", got)
	}
	clock.add(time.Millisecond)
	if got := c.Time(ctx).Val().Sub(start); got != 6*time.Millisecond {
		t.Errorf("after a step TIME moved %v", got)
	}
}
