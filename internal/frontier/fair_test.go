package frontier_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

func TestAHugeHostStarvesNobody(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t)
		add := func(urls []string) {
			for len(urls) > 0 {
				n := min(len(urls), frontier.BatchSize)
				_, err := b.Add(ctx, run, entries(t, urls[:n]...))
				must(t, err)
				urls = urls[n:]
			}
		}
		add(urls("huge.example", 10_000))
		for i := range 50 {
			add(urls(fmt.Sprintf("small%d.example", i), 3))
		}
		// 51 hosts, 10 a peek, 1 URL a host a claim: after 3 rounds of the ring, or 16
		// peeks, every small host is done.
		got := map[string]int{}
		for range 17 {
			hosts, err := b.Peek(ctx, run, 10)
			must(t, err)
			for _, h := range hosts {
				got[h.Host] += len(b.claim(t, run, 1, h.Host))
			}
		}
		for i := range 50 {
			if h := fmt.Sprintf("small%d.example:80", i); got[h] != 3 {
				t.Errorf("%s got %d turns of 3", h, got[h])
			}
		}
		if got["huge.example:80"] < 3 {
			t.Errorf("the huge host got %d turns", got["huge.example:80"])
		}
		hosts, err := b.Peek(ctx, run, 10)
		must(t, err)
		if len(hosts) != 1 || hosts[0].Queued != int64(10_000-got["huge.example:80"]) || hosts[0].Running != int64(got["huge.example:80"]) {
			t.Errorf("left: %+v", hosts)
		}
	})
}

func TestOpenClaimsPagesPastTheEnded(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		ctx := context.Background()
		run := b.start(t)
		_, err := b.Add(ctx, run, entries(t, urls("a.example", 3000)...))
		must(t, err)
		want := map[string]bool{}
		var claims []frontier.Claim
		for range 3 {
			claims = append(claims, b.claim(t, run, 3000, "a.example:80")...)
		}
		if len(claims) != 3000 || claims[0].Epoch != 1 || claims[2999].Epoch != 3000 {
			t.Fatalf("%d claims in three calls", len(claims))
		}
		for i, c := range claims {
			if i%700 == 0 || i == 2999 {
				want[c.ID] = true
				must(t, b.MarkStarted(ctx, run, []frontier.Started{{ID: c.ID, Epoch: c.Epoch, RunID: "r" + strconv.Itoa(i)}}))
				continue
			}
			_, err := b.Ack(ctx, run, frontier.Ack{ID: c.ID, State: crawl.Completed, File: "f"})
			must(t, err)
		}
		var last int64
		pages := 0
		for after := ""; ; pages++ {
			page, next, err := b.OpenClaims(ctx, run, after, 2)
			must(t, err)
			if len(page) > 2 {
				t.Fatalf("page of %d", len(page))
			}
			for _, c := range page {
				if !want[c.ID] || c.Epoch <= last || c.RunID == "" || c.Age < 0 {
					t.Fatalf("claim %+v after epoch %d", c, last)
				}
				last = c.Epoch
				delete(want, c.ID)
			}
			if next == "" {
				break
			}
			if pages > 20 {
				t.Fatal("no end of pages")
			}
			after = next
		}
		if len(want) != 0 {
			t.Errorf("%d open claims not seen", len(want))
		}
	})
}
