package frontier_test

import (
	"context"
	"errors"
	"testing"

	"holdfast/internal/frontier"
)

func TestRunsAreNumberedAndResumed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		again := frontier.CreateOptions{NewRun: true}
		create := func(src frontier.Source, o frontier.CreateOptions) (frontier.RunInfo, bool, error) {
			return b.CreateRun(ctx, spec("docs"), src, o)
		}

		if _, err := b.Latest(ctx, "docs"); !errors.Is(err, frontier.ErrNoRun) {
			t.Fatalf("latest of nothing: %v", err)
		}
		info, resumed, err := create(input, frontier.CreateOptions{})
		must(t, err)
		if resumed || info.Name() != "docs-1" || info.State != frontier.RunLoading || info.Source != input || info.Created.IsZero() {
			t.Fatalf("first run: resumed %v, %+v", resumed, info)
		}
		if info.Spec.Name != "docs" || info.Spec.Concurrency != 256 {
			t.Fatalf("spec not kept: %+v", info.Spec)
		}

		_, err = b.AddBatch(ctx, "docs-1", 1, entries(t, "http://a.example/"))
		must(t, err)
		info, resumed, err = create(input, frontier.CreateOptions{})
		must(t, err)
		if !resumed || info.Batches != 1 || info.Counts.Accepted != 1 {
			t.Fatalf("resumed %v, %+v", resumed, info)
		}
		other := input
		other.Digest = "d2"
		if info, _, err = create(other, frontier.CreateOptions{}); !errors.Is(err, frontier.ErrInputDiffers) || info.Source.Label != "urls.txt" {
			t.Fatalf("other input: %v, %+v", err, info)
		}
		must(t, b.Pause(ctx, "docs-1"))
		if info, resumed, err = create(input, frontier.CreateOptions{}); err != nil || !resumed {
			t.Fatalf("a run paused while loading: resumed %v, %v, %+v", resumed, err, info)
		}
		must(t, b.Resume(ctx, "docs-1"))

		must(t, b.Seal(ctx, "docs-1"))
		if _, _, err = create(input, again); !errors.Is(err, frontier.ErrRunOpen) {
			t.Fatalf("open run: %v", err)
		}
		must(t, b.Cancel(ctx, "docs-1"))
		if _, _, err = create(input, again); !errors.Is(err, frontier.ErrRunOpen) {
			t.Fatalf("canceling run: %v", err)
		}
		_, err = b.SkipQueued(ctx, "docs-1", "campaign_canceled", 10)
		must(t, err)
		if over, err := b.FinishIfIdle(ctx, "docs-1"); err != nil || !over {
			t.Fatalf("finish: %v, %v", over, err)
		}
		if info, _, err = create(input, frontier.CreateOptions{}); !errors.Is(err, frontier.ErrRunEnded) || info.State != frontier.RunCanceled || info.Ended.IsZero() {
			t.Fatalf("ended run: %v, %+v", err, info)
		}
		info, resumed, err = create(input, again)
		must(t, err)
		if resumed || info.Name() != "docs-2" {
			t.Fatalf("new run: resumed %v, %+v", resumed, info)
		}

		_, _, err = b.CreateRun(ctx, spec("docs-1"), input, frontier.CreateOptions{})
		must(t, err)
		all, err := b.Runs(ctx)
		must(t, err)
		var names []string
		for _, r := range all {
			names = append(names, r.Name())
		}
		if len(names) != 3 || names[0] != "docs-1" || names[1] != "docs-2" || names[2] != "docs-1-1" {
			t.Fatalf("runs: %v", names)
		}
		for who, want := range map[string]string{"docs": "docs-2", "docs-2": "docs-2", "docs-1": "docs-1-1"} {
			if info, err := b.Resolve(ctx, who); err != nil || info.Name() != want {
				t.Errorf("resolve %s: %s, %v; want %s", who, info.Name(), err, want)
			}
		}
		states, err := b.States(ctx, []string{"none-1", "docs-1", "docs-2"})
		must(t, err)
		if states[0] != "" || states[1] != frontier.RunCanceled || states[2] != frontier.RunLoading {
			t.Fatalf("states: %q", states)
		}
	})
}

func TestACampaignsNameIsChecked(t *testing.T) {
	t.Parallel()
	b := onMiniredis(t)
	for _, name := range []string{"", "Docs", "a b", "a}b", "-a", "ä", "a/b"} {
		if _, _, err := b.CreateRun(context.Background(), spec(name), input, frontier.CreateOptions{}); !errors.Is(err, frontier.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTwoStartersOfOneInputShareARun(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		type result struct {
			info frontier.RunInfo
			err  error
		}
		ch := make(chan result)
		for range 8 {
			go func() {
				info, _, err := b.CreateRun(context.Background(), spec("docs"), input, frontier.CreateOptions{})
				ch <- result{info, err}
			}()
		}
		for range 8 {
			if r := <-ch; r.err != nil || r.info.Name() != "docs-1" {
				t.Errorf("%v, %v", r.info.Name(), r.err)
			}
		}
	})
}

func TestTheFirstSinkWins(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		if url, err := b.Sink(ctx); err != nil || url != "" {
			t.Fatalf("no sink: %q, %v", url, err)
		}
		for _, url := range []string{"file:///a", "file:///b"} {
			if got, err := b.RegisterSink(ctx, url); err != nil || got != "file:///a" {
				t.Errorf("register %s: %q, %v", url, got, err)
			}
		}
	})
}

func TestEveryCallOnAMissingRunSaysSo(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		const run = "none-1"
		calls := map[string]func() error{
			"Run":          func() error { _, err := b.Run(ctx, run); return err },
			"Counts":       func() error { _, err := b.Counts(ctx, run); return err },
			"AddBatch":     func() error { _, err := b.AddBatch(ctx, run, 1, nil); return err },
			"Seal":         func() error { return b.Seal(ctx, run) },
			"Cancel":       func() error { return b.Cancel(ctx, run) },
			"TakeOver":     func() error { return b.TakeOver(ctx, run, 1) },
			"Peek":         func() error { _, err := b.Peek(ctx, run, 1); return err },
			"Claim":        func() error { _, err := b.Claim(ctx, run, 0, nil); return err },
			"MarkStarted":  func() error { return b.MarkStarted(ctx, run, []frontier.Started{{ID: "x"}}) },
			"Requeue":      func() error { return b.Requeue(ctx, run, "x", 1) },
			"Park":         func() error { return b.Park(ctx, run, frontier.Parked{ID: "x"}) },
			"Ack":          func() error { _, err := b.Ack(ctx, run, frontier.Ack{State: "completed"}); return err },
			"OpenClaims":   func() error { _, _, err := b.OpenClaims(ctx, run, "", 1); return err },
			"SkipQueued":   func() error { _, err := b.SkipQueued(ctx, run, "", 1); return err },
			"FinishIfIdle": func() error { _, err := b.FinishIfIdle(ctx, run); return err },
			"Resolve":      func() error { _, err := b.Resolve(ctx, run); return err },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, frontier.ErrNoRun) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
