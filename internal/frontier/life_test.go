package frontier_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

func TestAURLLivesFromTheQueueToItsEnd(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t, "http://a.example/?b=1&a=2")
		c := b.claim(t, run, 5, "a.example:80")
		if len(c) != 1 || c[0].URL != "http://a.example/?b=1&a=2" || c[0].Epoch != 1 || c[0].AcceptedMS == 0 || c[0].Host != "a.example:80" {
			t.Fatalf("claims: %+v", c)
		}
		id := c[0].ID
		must(t, b.MarkStarted(ctx, run, []frontier.Started{{ID: id, Epoch: 1, RunID: "r1"}}))
		must(t, b.Park(ctx, run, frontier.Parked{ID: id, Why: crawl.WaitNotBefore, Wait: time.Hour}))
		if n := b.counts(t, run); n.Waiting != 1 || n.Running != 0 || n.Waits != 1 || n.Open() != 1 {
			t.Fatalf("parked: %+v", n)
		}
		groups, err := b.Waiting(ctx, run)
		must(t, err)
		if len(groups) != 1 || groups[0].URLs != 1 || groups[0].Host != "a.example:80" || groups[0].Why != crawl.WaitNotBefore {
			t.Fatalf("groups: %+v", groups)
		}
		if d := time.Until(groups[0].Until); d < 50*time.Minute || d > 70*time.Minute {
			t.Errorf("waits until %v", groups[0].Until)
		}
		if over, err := b.FinishIfIdle(ctx, run); err != nil || over {
			t.Fatalf("finished with a waiting URL: %v, %v", over, err)
		}
		info, err := b.URL(ctx, run, id)
		must(t, err)
		if info.State != crawl.Waiting || info.Why != crawl.WaitNotBefore || !info.Until.Equal(groups[0].Until) || info.RunID != "r1" || info.Reason != "" {
			t.Fatalf("waiting URL: %+v", info)
		}
		must(t, b.Park(ctx, run, frontier.Parked{ID: id}))
		if groups, _ := b.Waiting(ctx, run); len(groups) != 0 {
			t.Fatalf("groups after the wait: %+v", groups)
		}
		a := frontier.Ack{ID: id, State: crawl.Completed, File: "pages-w1", Proxy: "p1", Bytes: 1 << 40, WireBytes: 7, Retries: 2, ProxyFaults: 3}
		got, err := b.Ack(ctx, run, a)
		must(t, err)
		if !got.First || got.File != "pages-w1" {
			t.Fatalf("ack: %+v", got)
		}
		a.File, a.State = "pages-w2", crawl.Failed
		if got, err = b.Ack(ctx, run, a); err != nil || got.First || got.File != "pages-w1" {
			t.Fatalf("second ack: %+v, %v", got, err)
		}
		want := frontier.Counts{Accepted: 1, Completed: 1, Bytes: 1 << 40, WireBytes: 7, Retries: 2, ProxyFaults: 3, Waits: 1}
		if n := b.counts(t, run); n != want {
			t.Fatalf("counts %+v, want %+v", n, want)
		}
		info, err = b.URL(ctx, run, id)
		must(t, err)
		if info.State != crawl.Completed || info.File != "pages-w1" || info.Proxy != "p1" || info.URL != "http://a.example/?b=1&a=2" {
			t.Fatalf("URL: %+v", info)
		}
		if over, err := b.FinishIfIdle(ctx, run); err != nil || !over {
			t.Fatalf("finish: %v, %v", over, err)
		}
		r, err := b.Run(ctx, run)
		must(t, err)
		if r.State != frontier.RunFinished || r.Ended.IsZero() {
			t.Fatalf("run: %+v", r)
		}
		if _, err := b.Add(ctx, run, entries(t, "http://b.example/")); !errors.Is(err, frontier.ErrRunEnded) {
			t.Fatalf("add to an ended run: %v", err)
		}
		if err := b.Cancel(ctx, run); !errors.Is(err, frontier.ErrRunEnded) {
			t.Fatalf("cancel of a finished run: %v", err)
		}
	})
}

func TestABatchIsCountedOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		_, _, err := b.CreateRun(ctx, spec("docs"), input, frontier.CreateOptions{})
		must(t, err)
		batch := entries(t, "http://a.example/1", "http://a.example/2", "http://A.example:80/1#x")
		for range 3 {
			if got, err := b.AddBatch(ctx, "docs-1", 1, batch); err != nil || got != (frontier.Added{Added: 2, Seen: 1}) {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		if got, err := b.AddBatch(ctx, "docs-1", 2, batch); err != nil || got != (frontier.Added{Seen: 3}) {
			t.Fatalf("batch 2: %+v, %v", got, err)
		}
		if got, err := b.Add(ctx, "docs-1", batch); err != nil || got != (frontier.Added{Seen: 3}) {
			t.Fatalf("add: %+v, %v", got, err)
		}
		must(t, b.Seal(ctx, "docs-1"))
		if _, err := b.AddBatch(ctx, "docs-1", 3, batch); !errors.Is(err, frontier.ErrSealed) {
			t.Fatalf("batch after the seal: %v", err)
		}
		if got, err := b.AddBatch(ctx, "docs-1", 1, batch); err != nil || got.Added != 2 {
			t.Fatalf("batch 1 after the seal: %+v, %v", got, err)
		}
		if got, err := b.Add(ctx, "docs-1", entries(t, "http://a.example/3")); err != nil || got.Added != 1 {
			t.Fatalf("add after the seal: %+v, %v", got, err)
		}
		if n := b.counts(t, "docs-1"); n.Accepted != 3 || n.Queued != 3 {
			t.Fatalf("counts: %+v", n)
		}
	})
}

func TestExtrasComeBackWhole(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t, "http://a.example/plain")
		e, err := frontier.NewEntry(crawl.Request{
			URL: "http://a.example/x", Method: "post", Body: "tab\tline\n\x00", Key: "k",
			Headers: map[string]string{"X-A": "1"}, Meta: []byte(`{ "a": 1 }`),
		}, 2, "http://a.example/")
		must(t, err)
		_, err = b.Add(ctx, run, []frontier.Entry{e})
		must(t, err)
		for _, c := range b.claim(t, run, 9, "a.example:80") {
			r, err := b.Extras(ctx, run, c.ID)
			must(t, err)
			if c.ID != e.ID {
				if c.Extras || r.Method != "" || r.URL != "http://a.example/plain" || r.HasExtras() {
					t.Errorf("plain request: %+v, %+v", c, r)
				}
				continue
			}
			if !c.Extras || c.Depth != 2 || c.Parent != "http://a.example/" || c.Method != "POST" ||
				r.Body != "tab\tline\n\x00" || r.Headers["X-A"] != "1" || string(r.Meta) != `{"a":1}` || r.Key != "k" || r.Method != "POST" {
				t.Errorf("request with extras: %+v, %+v", c, r)
			}
		}
		if _, err := b.Extras(ctx, run, "nobody"); !errors.Is(err, frontier.ErrNoURL) {
			t.Errorf("unknown id: %v", err)
		}
	})
}

func TestOnlyTheLatestFeederClaims(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t, urls("a.example", 3)...)
		quota := []frontier.HostQuota{{Host: "a.example:80", N: 1}}
		must(t, b.TakeOver(ctx, run, 2))
		must(t, b.TakeOver(ctx, run, 2))
		if _, err := b.Claim(ctx, run, 1, quota); !errors.Is(err, frontier.ErrFenced) {
			t.Fatalf("old feeder: %v", err)
		}
		if err := b.TakeOver(ctx, run, 1); !errors.Is(err, frontier.ErrFenced) {
			t.Fatalf("old feeder takes over: %v", err)
		}
		if c, err := b.Claim(ctx, run, 2, quota); err != nil || len(c) != 1 {
			t.Fatalf("new feeder: %v, %v", c, err)
		}
		must(t, b.Pause(ctx, run))
		if c, err := b.Claim(ctx, run, 2, quota); err != nil || len(c) != 0 {
			t.Fatalf("paused: %v, %v", c, err)
		}
		must(t, b.Resume(ctx, run))
		if c, err := b.Claim(ctx, run, 2, quota); err != nil || len(c) != 1 {
			t.Fatalf("resumed: %v, %v", c, err)
		}
		must(t, b.Cancel(ctx, run))
		must(t, b.Cancel(ctx, run))
		if c, err := b.Claim(ctx, run, 2, quota); err != nil || len(c) != 0 {
			t.Fatalf("canceling: %v, %v", c, err)
		}
		if n := b.counts(t, run); n.Running != 2 || n.Queued != 1 {
			t.Fatalf("counts: %+v", n)
		}
	})
}

func TestAGivenBackClaimGetsANewEpoch(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t, urls("a.example", 3)...)
		first := b.claim(t, run, 1, "a.example:80")[0]
		must(t, b.Park(ctx, run, frontier.Parked{ID: first.ID, Why: crawl.WaitBackoff, Wait: time.Minute}))
		must(t, b.Requeue(ctx, run, first.ID, first.Epoch+7))
		if n := b.counts(t, run); n.Waiting != 1 {
			t.Fatalf("another epoch: %+v", n)
		}
		must(t, b.Requeue(ctx, run, first.ID, first.Epoch))
		must(t, b.Requeue(ctx, run, first.ID, first.Epoch))
		if n := b.counts(t, run); n.Queued != 3 || n.Open() != 0 {
			t.Fatalf("requeued: %+v", n)
		}
		if g, _ := b.Waiting(ctx, run); len(g) != 0 {
			t.Fatalf("groups: %+v", g)
		}
		again := b.claim(t, run, 1, "a.example:80")[0]
		if again.ID != first.ID || again.Epoch <= first.Epoch {
			t.Fatalf("%+v after %+v", again, first)
		}
		must(t, b.MarkStarted(ctx, run, []frontier.Started{{ID: first.ID, Epoch: first.Epoch, RunID: "old"}}))
		open, next, err := b.OpenClaims(ctx, run, "", 10)
		must(t, err)
		if len(open) != 1 || next != "" || open[0].RunID != "" || open[0].Epoch != again.Epoch || open[0].State != crawl.Running || open[0].URL != first.URL || open[0].AcceptedMS != first.AcceptedMS {
			t.Fatalf("open claims: %+v, %q", open, next)
		}
	})
}

func TestFailuresAreDeadLetters(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t, urls("a.example", 5)...)
		for i, c := range b.claim(t, run, 5, "a.example:80") {
			a := frontier.Ack{ID: c.ID, State: crawl.Failed, Reason: "http_404", File: "failures-w1"}
			switch i {
			case 3:
				a.Reason = crawl.ReasonBlocked
			case 4:
				a.State, a.Reason = crawl.Skipped, crawl.ReasonRobotsDenied
			}
			_, err := b.Ack(ctx, run, a)
			must(t, err)
		}
		n, err := b.FailureCounts(ctx, run)
		must(t, err)
		if len(n) != 2 || n["http_404"] != 3 || n["blocked"] != 1 {
			t.Fatalf("failure counts: %v", n)
		}
		page, err := b.Failures(ctx, run, 2, 10)
		must(t, err)
		if len(page) != 2 || page[0].Reason != "http_404" || page[1].Reason != crawl.ReasonBlocked || page[1].State != crawl.Failed {
			t.Fatalf("failures: %+v", page)
		}
		if n := b.counts(t, run); n.Failed != 4 || n.Skipped != 1 {
			t.Fatalf("counts: %+v", n)
		}
	})
}

func TestSkippedURLsAreAnsweredUntilTheirRecordStands(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t, append(urls("a.example", 3), urls("b.example", 2)...)...)
		open := b.claim(t, run, 1, "b.example:80")[0]
		must(t, b.Cancel(ctx, run))
		first, err := b.SkipQueued(ctx, run, crawl.ReasonSkippedCanceled, 2)
		must(t, err)
		again, err := b.SkipQueued(ctx, run, crawl.ReasonSkippedCanceled, 2)
		must(t, err)
		if len(first) != 2 || len(again) != 2 || first[0].ID != again[0].ID || first[1].ID != again[1].ID {
			t.Fatalf("skipped %+v, then %+v", first, again)
		}
		seen := map[string]bool{}
		for round := 0; ; round++ {
			page, err := b.SkipQueued(ctx, run, crawl.ReasonSkippedCanceled, 2)
			must(t, err)
			if len(page) == 0 {
				break
			}
			if round > 5 {
				t.Fatal("no end of skipping")
			}
			for _, c := range page {
				seen[c.ID] = true
				a := frontier.Ack{ID: c.ID, State: crawl.Skipped, Reason: crawl.ReasonSkippedCanceled, File: "failures-w1"}
				if got, err := b.Ack(ctx, run, a); err != nil || got.First || got.File != "failures-w1" {
					t.Fatalf("confirm: %+v, %v", got, err)
				}
				a.File = "failures-w2"
				if got, err := b.Ack(ctx, run, a); err != nil || got.File != "failures-w1" {
					t.Fatalf("confirm elsewhere: %+v, %v", got, err)
				}
			}
		}
		if len(seen) != 4 || seen[open.ID] {
			t.Fatalf("skipped %d URLs", len(seen))
		}
		if n := b.counts(t, run); n.Skipped != 4 || n.Running != 1 {
			t.Fatalf("counts: %+v", n)
		}
		if over, _ := b.FinishIfIdle(ctx, run); over {
			t.Fatal("ended with an open claim")
		}
		_, err = b.Ack(ctx, run, frontier.Ack{ID: open.ID, State: crawl.StateCanceled})
		must(t, err)
		if over, err := b.FinishIfIdle(ctx, run); err != nil || !over {
			t.Fatalf("finish: %v, %v", over, err)
		}
		if r, _ := b.Run(ctx, run); r.State != frontier.RunCanceled {
			t.Fatalf("state %s", r.State)
		}
	})
}

func TestAnUnsealedRunNeverFinishesAndACancelingOneDoes(t *testing.T) {
	t.Parallel()
	b := onMiniredis(t)
	ctx := context.Background()
	_, _, err := b.CreateRun(ctx, spec("docs"), input, frontier.CreateOptions{})
	must(t, err)
	if over, err := b.FinishIfIdle(ctx, "docs-1"); err != nil || over {
		t.Fatalf("unsealed: %v, %v", over, err)
	}
	must(t, b.Cancel(ctx, "docs-1"))
	if over, err := b.FinishIfIdle(ctx, "docs-1"); err != nil || !over {
		t.Fatalf("canceling: %v, %v", over, err)
	}
}

func TestRecordFilesAnswerInOrder(t *testing.T) {
	t.Parallel()
	b := onMiniredis(t)
	ctx := context.Background()
	run := b.start(t, urls("a.example", 2)...)
	c := b.claim(t, run, 2, "a.example:80")
	_, err := b.Ack(ctx, run, frontier.Ack{ID: c[1].ID, State: crawl.Completed, File: "pages-w1"})
	must(t, err)
	files, err := b.RecordFiles(ctx, run, []crawl.RecordKey{{ID: "x"}, {ID: c[0].ID}, {ID: c[1].ID}, {ID: c[1].ID, Replay: 1}})
	must(t, err)
	if len(files) != 4 || files[0] != "" || files[1] != "" || files[2] != "pages-w1" || files[3] != "" {
		t.Fatalf("files: %q", files)
	}
}

func TestAckRunsAgainAfterNOSCRIPTInAPipeline(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t, urls("a.example", 2)...)
		for i, c := range b.claim(t, run, 2, "a.example:80") {
			if b.mini != nil {
				must(t, b.rdb.ScriptFlush(ctx).Err())
			}
			p := b.rdb.Pipeline()
			ack := b.AckOn(ctx, p, run, frontier.Ack{ID: c.ID, State: crawl.Completed, File: "f"})
			_, err := p.Exec(ctx)
			if b.mini != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
				t.Fatalf("exec after a flush: %v", err)
			}
			if got, err := ack(ctx); err != nil || !got.First || got.File != "f" {
				t.Fatalf("ack %d: %+v, %v", i, got, err)
			}
		}
		p := b.rdb.Pipeline()
		bad := b.AckOn(ctx, p, run, frontier.Ack{ID: "x", State: crawl.Running})
		if _, err := bad(ctx); err == nil {
			t.Error("an ack of a state that is no end passed")
		}
		if _, err := b.Ack(ctx, run, frontier.Ack{ID: "x", State: crawl.Failed}); !errors.Is(err, frontier.ErrNoURL) {
			t.Errorf("ack of an unknown URL: %v", err)
		}
	})
}

func TestAPassThatWaitsIsCountedOnceHoweverOftenItParks(t *testing.T) {
	t.Parallel()
	b := onMiniredis(t)
	ctx := context.Background()
	run := b.start(t, "http://a.example/")
	id := b.claim(t, run, 1, "a.example:80")[0].ID
	for range 3 {
		must(t, b.Park(ctx, run, frontier.Parked{ID: id, Why: crawl.WaitBackoff, Wait: time.Hour, Token: "lease/1"}))
	}
	must(t, b.Park(ctx, run, frontier.Parked{ID: id, Why: crawl.WaitBackoff, Wait: time.Hour, Token: "lease/2"}))
	must(t, b.Park(ctx, run, frontier.Parked{ID: id, Replay: 1, Why: crawl.WaitBackoff, Wait: time.Hour}))
	if n := b.counts(t, run); n.Waits != 2 || n.Waiting != 1 {
		t.Errorf("counts: %+v", n)
	}
	if err := b.Park(ctx, run, frontier.Parked{ID: "x", Wait: time.Hour}); !errors.Is(err, frontier.ErrNoURL) {
		t.Errorf("unknown id: %v", err)
	}
}

func TestTheBooksTakeNoControlCharacters(t *testing.T) {
	t.Parallel()
	b := onMiniredis(t)
	ctx := context.Background()
	run := b.start(t, "http://a.example/")
	e := entries(t, "http://b.example/")[0]
	for _, broken := range []frontier.Entry{
		{ID: e.ID, Host: "h\x00", Request: e.Request},
		{ID: e.ID, Host: e.Host, Parent: "p\t", Request: e.Request},
		{ID: e.ID, Host: e.Host, Request: crawl.Request{URL: "http://b.example/\t"}},
		{Host: e.Host, Request: e.Request},
	} {
		if _, err := b.Add(ctx, run, []frontier.Entry{broken}); err == nil {
			t.Errorf("%+v was taken", broken)
		}
	}
	if _, err := b.Ack(ctx, run, frontier.Ack{ID: e.ID, State: crawl.Failed, Reason: "a\tb"}); err == nil {
		t.Error("a reason with a tab was taken")
	}
	if n := b.counts(t, run); n.Accepted != 1 {
		t.Errorf("counts: %+v", n)
	}
}
