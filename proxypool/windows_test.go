package proxypool_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// sample lends proxy i once and lets it succeed or fail.
func (b *bundle) sample(i int, good bool) {
	b.tb.Helper()
	v := crawl.ProxyFailure
	if good {
		v = crawl.ProxySuccess
	}
	b.samples++
	b.lend(fmt.Sprint("sample ", b.samples), "h:80", v, "", only(i))
}

// aDay gives p01 a day of successes and p02 one of seven in ten.
func aDay(b *bundle) {
	b.numbered(2, proxypool.ImportOptions{})
	for i := range 145 {
		b.sample(1, true)
		b.sample(2, i%10 != 0 && i%10 != 3 && i%10 != 7)
		b.pass(10 * time.Minute)
	}
}

func TestAProxyThatWasGoodAllDayAndFailsNowRanksBelowAFairOne(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	aDay(b)
	if good, fair := b.info("p01").Score, b.info("p02").Score; good < 950 || fair < 550 || fair > 900 {
		t.Errorf("after the day: %d and %d", good, fair)
	}
	for _, cooling := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		b.sample(1, false)
		b.sample(2, cooling != time.Minute)
		b.pass(cooling)
	}
	good, fair := b.info("p01"), b.info("p02")
	if good.Score >= fair.Score-200 {
		t.Errorf("after minutes of failing: %d (%+v), the fair one has %d (%+v)", good.Score, good.Windows, fair.Score, fair.Windows)
	}
	if w := good.Windows; w.TenMinutes.Bad != 4 || w.TenMinutes.OK > 1 || w.Day.Bad != 4 || w.Day.OK < 120 || w.Day.OK > 144 {
		t.Errorf("windows %+v", w)
	}
	used := map[string]int{}
	for i := range 60 {
		g := b.granted(ask(fmt.Sprint("choice", i), proxied, seed(i)))
		used[g.Proxy.ID]++
		b.release(g.LeaseID, crawl.ProxyNeutral, "")
		b.pass(time.Second)
	}
	if used["p02"] <= used["p01"] {
		t.Errorf("leases %v, want the fair one more often", used)
	}
}

func TestWindowsRunOut(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.numbered(1, proxypool.ImportOptions{})
	for range 3 {
		b.sample(1, true)
	}
	b.sample(1, false)
	w, full := b.info("p01").Windows, proxypool.Window{OK: 3, Bad: 1}
	if w.TenMinutes != full || w.Hour != full || w.Day != full {
		t.Errorf("at once: %+v", w)
	}
	for _, c := range []struct {
		pass           time.Duration
		ten, hour, day bool
	}{{7 * time.Minute, true, true, true}, {5 * time.Minute, false, true, true}, {50 * time.Minute, false, false, true}, {24 * time.Hour, false, false, false}} {
		b.pass(c.pass)
		w := b.info("p01").Windows
		if (w.TenMinutes == full) != c.ten || (w.Hour == full) != c.hour || (w.Day == full) != c.day {
			t.Errorf("%s later: %+v", c.pass, w)
		}
	}
	// A sample in a bucket that was another's long ago counts alone.
	b.sample(1, true)
	if w := b.info("p01").Windows; w.Day != (proxypool.Window{OK: 1}) || w.TenMinutes != w.Day {
		t.Errorf("a day later: %+v", w)
	}
}

func TestABucketThatIsFullKeepsItsShare(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.numbered(1, proxypool.ImportOptions{})
	b.sample(1, true)
	// The ring's digits for 6,399 successes and 3,200 failures in the bucket.
	full, empty := string([]byte{42 + 6399/80, 42 + 6399%80, 42 + 3200/80, 42 + 3200%80}), "****"
	packed, err := b.rdb.HGet(b.ctx, b.keysOf("proxies")[0], "p01").Result()
	b.ok(err)
	b.ok(b.rdb.HSet(b.ctx, b.keysOf("proxies")[0], "p01", replaceCells(packed, empty, full)).Err())
	b.lend("one more", "h:80", crawl.ProxySuccess, "", only(1))
	if w := b.info("p01").Windows.TenMinutes; w.OK != 3200 || w.Bad != 1600 {
		t.Errorf("%+v, want the full bucket halved", w)
	}
}

// replaceCells fills the bucket of the ring that holds one success, in each window.
func replaceCells(packed, empty, full string) string {
	head, cells, _ := strings.Cut(packed, ":")
	out := ""
	for i := 0; i+4 <= len(cells); i += 4 {
		if cell := cells[i : i+4]; cell != empty {
			out += full
		} else {
			out += cell
		}
	}
	return head + ":" + out + "|"
}

func TestADayOfMostlyFailuresQuarantinesThoughASuccessResetsTheRow(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	b.numbered(1, proxypool.ImportOptions{})
	n := 0
	for b.info("p01").State == proxypool.StateActive && n < 40 {
		b.sample(1, n%5 == 0)
		n++
		if c := b.info("p01").CoolingUntil; !c.IsZero() {
			b.pass(c.Sub(b.now))
		}
	}
	if info := b.info("p01"); info.State != proxypool.StateQuarantined || info.Reason != "timeout" || n > 20 {
		t.Errorf("after %d samples: %+v", n, info)
	}
	b.ok(b.Restore(b.ctx, "p01"))
	if info := b.info("p01"); info.State != proxypool.StateActive || info.Score != 750 || info.Windows.Day.Bad != 0 || info.Failures == 0 {
		t.Errorf("restored: %+v", info)
	}
}

func TestRefusedCredentialsSuspectAllThatHaveTheSame(t *testing.T) {
	t.Parallel()
	b := onMini(t, proxypool.Options{})
	for i := range 4 {
		pass := "same"
		if i == 3 {
			pass = "other"
		}
		b.load(fmt.Sprintf("user:%s@h%d:1", pass, i), proxypool.ImportOptions{Tags: []string{fmt.Sprintf("n%d", i+1)}, MaxConcurrency: 5})
	}
	b.granted(ask("open before", only(2)))
	b.pass(time.Millisecond)
	b.lend("refused", "h:80", crawl.ProxyDenied, "", only(1))
	if s := b.info("p01").State; s != proxypool.StateQuarantined {
		t.Errorf("p01 is %s", s)
	}
	for id, want := range map[string]bool{"p02": true, "p03": true, "p04": false} {
		if got := b.info(id).Suspected; got != want {
			t.Errorf("%s suspected: %v, want %v", id, got, want)
		}
	}
	b.waits(ask("not beside the open one", only(2)), crawl.WaitProxyBusy)
	b.release("open before", crawl.ProxySuccess, "") // granted before: proves nothing
	b.pass(time.Millisecond)
	b.granted(ask("probe", only(2)))
	b.waits(ask("one at a time", only(2)), crawl.WaitProxyBusy)
	b.release("probe", crawl.ProxySuccess, "")
	b.granted(ask("proven", only(2)))
	b.granted(ask("proven again", only(2)))
	if b.info("p02").Suspected {
		t.Error("p02 is suspected after a success")
	}
	b.lend("the other's probe", "h:80", crawl.ProxyDenied, "", only(3))
	if s := b.info("p03").State; s != proxypool.StateQuarantined {
		t.Errorf("p03 is %s", s)
	}
	b.granted(ask("unsuspected", only(4)))
	b.granted(ask("unsuspected too", only(4)))
	b.pass(25 * time.Hour)
	if b.info("p02").Suspected {
		t.Error("a suspicion outlived its day")
	}
}
