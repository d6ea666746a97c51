package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/starter/cli"
	"holdfast/workflows"
)

// urlList has n URLs of loopback.
func urlList(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "http://127.0.0.1:8080/page/%d\n", i)
	}
	return b.String()
}

// status reads a run through the command.
func (b *bench) status(name string) cli.RunView {
	b.t.Helper()
	a := b.run("campaign", "status", name, "--output", "json").wants(b.t, 0)
	var v cli.RunView
	if err := json.Unmarshal([]byte(a.stdout), &v); err != nil {
		b.t.Fatalf("%v in %q", err, a.stdout)
	}
	if sum := v.Queued + v.Running + v.Waiting + v.Completed + v.Failed + v.Skipped + v.Canceled; sum != v.Accepted {
		b.t.Errorf("the counts add up to %d of %d accepted: %+v", sum, v.Accepted, v.Counts)
	}
	return v
}

// work ends every queued URL of a run, as workers would; end says how.
func (b *bench) work(run string, end func(c frontier.Claim) frontier.Ack) {
	b.t.Helper()
	ctx, store := b.t.Context(), b.frontier()
	if err := store.TakeOver(ctx, run, 1); err != nil {
		b.t.Fatal(err)
	}
	for {
		hosts, err := store.Peek(ctx, run, 10)
		if err != nil {
			b.t.Fatal(err)
		}
		var quotas []frontier.HostQuota
		for _, h := range hosts {
			quotas = append(quotas, frontier.HostQuota{Host: h.Host, N: 100})
		}
		if len(quotas) == 0 {
			break
		}
		claims, err := store.Claim(ctx, run, 1, quotas)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, c := range claims {
			if _, err := store.Ack(ctx, run, end(c)); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	if _, err := store.FinishIfIdle(ctx, run); err != nil {
		b.t.Fatal(err)
	}
}

func completed(c frontier.Claim) frontier.Ack {
	return frontier.Ack{ID: c.ID, State: crawl.Completed, File: "pages-w-0001.jsonl", Bytes: 10}
}

func TestStartLoadsTheListAndStartsOneWorkflow(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	list := b.file("urls.txt", urlList(2500)+"http://127.0.0.1:8080/page/7\n")
	a := b.run("campaign", "start", "--name", "docs", "--urls", list, "--direct", "--delay", "0s", "--output", "json").wants(t, 0)
	var got cli.Started
	if err := json.Unmarshal([]byte(a.stdout), &got); err != nil {
		t.Fatalf("%v in %q", err, a.stdout)
	}
	if got.Name != "docs-1" || got.WorkflowID != "docs-1" || got.Added.Added != 2500 || got.Seen != 1 || got.Resumed {
		t.Errorf("%+v", got)
	}
	r := b.fake.start("docs-1")
	if r == nil {
		t.Fatal("no workflow was started")
	}
	var in workflows.CampaignInput
	if err := converter.GetDefaultDataConverter().FromPayloads(r.GetInput(), &in); err != nil {
		t.Fatal(err)
	}
	if in.Campaign != "docs" || in.Run != 1 || r.GetTaskQueue().GetName() != workflows.ControlQueue ||
		r.GetWorkflowType().GetName() != workflows.CampaignWorkflow ||
		r.GetWorkflowIdReusePolicy() != enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE {
		t.Errorf("%+v %v", in, r)
	}
	info, err := b.frontier().Run(t.Context(), "docs-1")
	if err != nil {
		t.Fatal(err)
	}
	if !info.Spec.AllowPrivate || !info.Spec.Proxies.Direct || info.Spec.Politeness.Delay != 0 || !info.Sealed || info.Source.Label != "urls.txt" {
		t.Errorf("%+v", info)
	}
	if v := b.status("docs"); v.Accepted != 2500 || v.Queued != 2500 {
		t.Errorf("%+v", v)
	}
}

func TestStartPrintsItsProgressWhereTheListIsLong(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	list := b.file("urls.txt", urlList(1500))
	a := b.run("campaign", "start", "--name", "docs", "--urls", list, "--direct").wants(t, 0)
	a.says(t, "loading docs-1: 1500 of 1500 URLs", "1500 URLs added, 0 already seen", "campaign watch docs-1")
	if strings.Contains(a.stdout, "loading") {
		t.Errorf("progress on standard output: %s", a.stdout)
	}
	a = b.run("campaign", "start", "--name", "more", "--urls", list, "--direct", "--quiet").wants(t, 0)
	if a.stderr != "" {
		t.Errorf("--quiet says %q", a.stderr)
	}
}

func TestTheSameCommandGoesOnAfterItsStarterWasKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	list := b.file("urls.txt", urlList(2500))
	args := []string{"campaign", "start", "--name", "docs", "--urls", list, "--direct"}

	// Killed before the workflow was there: the run stays, nothing is loaded.
	b.fake.startErr = errors.New("lost")
	b.interrupted(func(string) bool {
		runs, err := b.frontier().Runs(t.Context())
		return err == nil && len(runs) == 1
	}, args...).wants(t, 130).says(t, "state kept")
	if v := b.status("docs"); v.State != frontier.RunLoading || v.Accepted != 0 {
		t.Fatalf("%+v", v)
	}
	// Killed in the middle of the list.
	b.fake.mu.Lock()
	b.fake.startErr = nil
	b.fake.mu.Unlock()
	entries, err := frontier.ParseURLs(strings.NewReader(urlList(1000)), "urls.txt", frontier.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.frontier().AddBatch(t.Context(), "docs-1", 1, entries); err != nil {
		t.Fatal(err)
	}
	// Other input is refused, the same goes on.
	other := b.file("other.txt", urlList(3))
	b.run("campaign", "start", "--name", "docs", "--urls", other, "--direct").wants(t, 2).says(t, "from other input", "urls.txt", "other.txt")
	b.run(append(args, "--delay", "5s")...).wants(t, 2).says(t, "flags differ")
	a := b.run(append(args, "--output", "json")...).wants(t, 0)
	var got cli.Started
	if err := json.Unmarshal([]byte(a.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Resumed || got.Run != 1 || got.Added.Added != 2500 {
		t.Errorf("%+v", got)
	}
	if v := b.status("docs"); v.Accepted != 2500 {
		t.Errorf("%+v", v)
	}
}

func TestStartIsRefusedWhileARunIsOpenAndAfterItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	list := b.file("urls.txt", urlList(3))
	args := []string{"campaign", "start", "--name", "docs", "--urls", list, "--direct"}
	b.run(args...).wants(t, 0)
	b.run(args...).wants(t, 2).says(t, "open run, docs-1", "campaign watch docs-1", "campaign add docs", "campaign cancel docs-1")
	b.run(append(args, "--new-run")...).wants(t, 2)
	b.work("docs-1", completed)
	b.run(args...).wants(t, 2).says(t, "docs-1, is finished", "--new-run")
	b.run(append(args, "--new-run")...).wants(t, 0).says(t, "docs-2")
	if b.fake.start("docs-2") == nil {
		t.Error("the second run has no workflow")
	}
}

func TestStartWithoutUsableProxiesIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	list := b.file("urls.txt", urlList(3))
	args := []string{"campaign", "start", "--name", "docs", "--urls", list}
	b.run(args...).wants(t, 2).says(t, "the pool has no proxy", "proxies import", "--direct")
	seedPool(t, b, "10.0.0.1:80")
	all, err := b.pool().Proxies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := all[0].ID
	b.run("proxies", "quarantine", id).wants(t, 0)
	b.run(args...).wants(t, 2).says(t, "none of the pool's 1 proxies can be used", "proxies list")
	if runs, err := b.frontier().Runs(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("a refused start left %v, %v", runs, err)
	}
	b.run("proxies", "restore", id).wants(t, 0)
	b.run(args...).wants(t, 0)
}

func TestStartNeedsAContactOffLoopback(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	list := b.file("urls.txt", "https://example.org/\n")
	args := []string{"campaign", "start", "--name", "docs", "--urls", list, "--direct"}
	b.run(args...).wants(t, 2)
	b.set("HOLDFAST_CONTACT", "https://example.org/bot")
	b.run(append(args, "--robots", "ignore")...).wants(t, 0).says(t, "robots.txt is ignored")
	info, err := b.frontier().Run(t.Context(), "docs-1")
	if err != nil {
		t.Fatal(err)
	}
	if info.Spec.Contact != "https://example.org/bot" || info.Spec.AllowPrivate || info.Spec.Politeness.Robots != "ignore" {
		t.Errorf("%+v", info.Spec)
	}
}

func TestStartSaysThatTheClusterWasNotSetUp(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	args := []string{"campaign", "start", "--name", "docs", "--urls", b.file("urls.txt", urlList(1)), "--direct"}
	delete(b.fake.attributes, "HoldfastHost")
	b.run(args...).wants(t, 2).says(t, "lacks Holdfast's search attributes", "starter setup")
	if runs, err := b.frontier().Runs(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("a refused start left %v, %v", runs, err)
	}
	b.run("setup").wants(t, 0)
	b.fake.startErr = serviceerror.NewInvalidArgument("Namespace default has no mapping defined for search attribute HoldfastCampaign")
	b.run(args...).
		wants(t, 2).says(t, "lacks Holdfast's search attributes", "starter setup")
}

func TestAddCountsWhatIsNewAndWhatIsSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.run("campaign", "start", "--name", "docs", "--urls", b.file("urls.txt", urlList(3)), "--direct").wants(t, 0)
	more := b.file("more.txt", urlList(5))
	b.run("campaign", "add", "docs", "--urls", more).wants(t, 0).says(t, "docs-1: 2 URLs added, 3 already seen")
	b.runWith(t.Context(), urlList(5), "campaign", "add", "docs-1", "--urls", "-", "--output", "json").
		wants(t, 0).says(t, `{"name":"docs-1","added":0,"seen":5}`)
	b.run("campaign", "add", "docs", "--urls", b.file("out.txt", "https://example.org/\n")).wants(t, 2).says(t, "--contact")
	b.work("docs-1", completed)
	b.run("campaign", "add", "docs", "--urls", more).wants(t, 2).says(t, "takes no more URLs", "--new-run")
}

func TestWatchFollowsARunToItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.run("campaign", "start", "--name", "docs", "--urls", b.file("urls.txt", urlList(4)), "--direct").wants(t, 0)
	got := make(chan answer)
	go func() { got <- b.run("campaign", "watch", "docs", "--output", "json") }()
	n := 0
	b.work("docs-1", func(c frontier.Claim) frontier.Ack {
		if n++; n == 1 {
			return frontier.Ack{ID: c.ID, State: crawl.Failed, Reason: "http_404", File: "failures-w-0001.jsonl"}
		}
		return completed(c)
	})
	a := (<-got).wants(t, 0)
	lines := strings.Split(strings.TrimSpace(a.stdout), "\n")
	var last cli.RunView
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last.State != frontier.RunFinished || last.Completed != 3 || last.Failed != 1 {
		t.Errorf("%+v", last)
	}
	b.run("campaign", "watch", "docs").wants(t, 0).says(t, "4 of 4 done", "failed: http_404 1")
	b.run("campaign", "list").wants(t, 0).says(t, "docs-1", "finished")
	b.run("failures", "list", "docs").wants(t, 0).says(t, "http_404", "127.0.0.1:8080", "the site says no")
	b.run("failures", "list", "docs", "--urls", "--reason", "http_404").wants(t, 0).says(t, "http://127.0.0.1:8080/page/")
	if a := b.run("failures", "list", "docs", "--urls", "--host", "other").wants(t, 0); a.stdout != "" {
		t.Errorf("another host has %q", a.stdout)
	}
}

func TestWatchDrawsABarOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.run("campaign", "start", "--name", "docs", "--urls", b.file("urls.txt", urlList(4)), "--direct").wants(t, 0)
	b.env.IsTTY = func(any) bool { return true }
	b.env.Width = func() int { return 60 }
	a := b.interrupted(func(printed string) bool { return strings.Contains(printed, "\x1b[2A") }, "campaign", "watch", "docs").wants(t, 130)
	a.says(t, "[........................] 0/4", "\x1b[2A", "state kept", "campaign watch docs-1")
	for line := range strings.Lines(a.stdout) {
		if n := len([]rune(strings.TrimSpace(line))); n > 70 {
			t.Errorf("a line of %d cells on a terminal of 60: %q", n, line)
		}
	}
}

func TestStartWaitExits1WhereNothingSucceeded(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	got := make(chan answer)
	list := b.file("urls.txt", urlList(2))
	go func() {
		got <- b.run("campaign", "start", "--name", "docs", "--urls", list, "--direct", "--wait", "--output", "json")
	}()
	eventually(t, "the run is loaded", func() bool {
		info, err := b.frontier().Run(t.Context(), "docs-1")
		return err == nil && info.Sealed
	})
	b.work("docs-1", func(c frontier.Claim) frontier.Ack {
		return frontier.Ack{ID: c.ID, State: crawl.Failed, Reason: crawl.ReasonBlocked, File: "failures-w-0001.jsonl"}
	})
	a := (<-got).wants(t, 1).says(t, "no URL of docs-1 succeeded", "failures list docs-1")
	var sum cli.Summary
	if err := json.Unmarshal([]byte(a.stdout), &sum); err != nil || sum.Failures[crawl.ReasonBlocked] != 2 {
		t.Errorf("%v, %+v in %q", err, sum, a.stdout)
	}
}

func TestCancelSetsTheFlagAndCancelsTheWorkflow(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.run("campaign", "start", "--name", "docs", "--urls", b.file("urls.txt", urlList(2)), "--direct").wants(t, 0)
	b.run("campaign", "cancel", "docs").wants(t, 2).says(t, "--yes")
	b.env.IsTTY = func(any) bool { return true }
	b.runWith(t.Context(), "n\n", "campaign", "cancel", "docs").wants(t, 2).says(t, "Cancel docs-1?", "nothing was changed")
	if v := b.status("docs"); v.State != frontier.RunRunning || len(b.fake.canceled) != 0 {
		t.Errorf("%+v %v", v, b.fake.canceled)
	}
	b.runWith(t.Context(), "y\n", "campaign", "cancel", "docs").wants(t, 0)
	if v := b.status("docs"); v.State != frontier.RunCanceling || len(b.fake.canceled) != 1 || b.fake.canceled[0] != "docs-1" {
		t.Errorf("%+v %v", v, b.fake.canceled)
	}
	b.env.IsTTY = nil
	b.run("campaign", "cancel", "docs", "--yes").wants(t, 0) // again: the same
	if _, err := b.frontier().SkipQueued(t.Context(), "docs-1", crawl.ReasonSkippedCanceled, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := b.frontier().FinishIfIdle(t.Context(), "docs-1"); err != nil {
		t.Fatal(err)
	}
	b.run("campaign", "cancel", "docs", "--yes").wants(t, 2).says(t, "canceled already")
}
