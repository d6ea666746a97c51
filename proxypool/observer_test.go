package proxypool_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/internal/crawl"
	"holdfast/proxypool"
)

// notes is an observer that writes everything down.
type notes struct {
	mu   sync.Mutex
	said []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, fmt.Sprintf(format, args...))
}

func (n *notes) Acquired(a proxypool.Acquired, took time.Duration, err error) {
	switch {
	case err != nil || took <= 0:
		n.add("acquire failed")
	case a.Grant != nil:
		n.add("grant")
	case a.Wait != nil:
		n.add("wait %s", a.Wait.Why)
	default:
		n.add("ended")
	}
}

func (n *notes) Released(v crawl.Verdict) { n.add("released %s", v.Proxy) }
func (n *notes) Reaped(k int)             { n.add("reaped %d", k) }
func (n *notes) Repaired(k int)           { n.add("repaired %d", k) }
func (n *notes) Counted(s proxypool.Stats) {
	n.add("active %d, scores %v", s.Proxies[proxypool.StateActive], s.Scores)
}

func TestTheObserverIsToldWhatHappens(t *testing.T) {
	t.Parallel()
	var o notes
	b := onMini(t, proxypool.Options{Observer: &o})
	b.proxies(1, proxypool.ImportOptions{})
	b.granted(ask("a", proxied))
	b.waits(ask("b", proxied), crawl.WaitProxyBusy)
	b.release("a", crawl.ProxySuccess, crawl.PairPassed)
	b.release("a", crawl.ProxyFailure, crawl.PairPassed)
	b.ends(ask("a", proxied))
	b.granted(ask("c", proxied))
	b.pass(time.Minute)
	b.ok(b.rdb.Del(b.ctx, b.keysOf("deadlines")...).Err())
	_, err := b.Reconcile(b.ctx)
	b.ok(err)
	_, err = b.Stats(b.ctx)
	b.ok(err)
	b.mini.SetError("away")
	if _, err := b.Acquire(b.ctx, ask("d")); err == nil {
		t.Error("no error from a Redis that is away")
	}
	want := []string{
		"grant", "wait proxies_busy", "released success", "ended", "grant", "reaped 1", "repaired 1",
		"active 1, scores [0 0 0 0 0 0 0 0 1 0]", "acquire failed",
	}
	if !slices.Equal(o.said, want) {
		t.Errorf("told %q,\nwant %q", o.said, want)
	}
}
