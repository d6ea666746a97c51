package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/starter/cli"
)

// crawl runs a crawl command as a program with embedded services builds it.
func (b *bench) crawl(args ...string) answer {
	b.t.Helper()
	var out, errs safeBuffer
	env := b.env
	env.Name, env.Stdout, env.Stderr = "holdfast", &out, &errs
	env.Environ = func() []string { return []string{"TEMPORAL_CONFIG_FILE=/dev/null"} }
	env.Services = func(context.Context) (cli.Services, error) {
		return cli.Services{Address: b.fake.addr, Redis: b.redis.Addr(), Started: "holdfast up"}, nil
	}
	app := cli.NewApp(env)
	root := app.Root()
	cmd := &cobra.Command{Use: "crawl"}
	c := app.Crawl(cmd)
	cmd.RunE = app.RunE(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		defer c.Close()
		if err := c.Prepare(ctx, cmd); err != nil {
			return err
		}
		return c.Run(ctx, "holdfast crawl …")
	})
	root.AddCommand(cmd)
	code := cli.Execute(b.t.Context(), root, append([]string{"crawl"}, args...), env)
	return answer{out.String(), errs.String(), code}
}

func TestCrawlRunAgainGoesOnAndThenPrintsTheSummary(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	list, proxies := b.file("urls.txt", urlList(3)), b.file("proxies.txt", "10.0.0.1:80\n")
	args := []string{"--urls", list, "--proxies", proxies, "--name", "mirror"}

	// A crawl that was killed after its list was loaded.
	ready := make(chan answer)
	go func() { ready <- b.crawl(args...) }()
	eventually(t, "the run is loaded", func() bool {
		info, err := b.frontier().Run(t.Context(), "mirror-1")
		return err == nil && info.Sealed
	})
	again := make(chan answer)
	go func() { again <- b.crawl(args...) }()
	b.crawl("--urls", b.file("other.txt", urlList(2)), "--proxies", proxies, "--name", "mirror").
		wants(t, 2).says(t, "mirror-1 is open", "other input", "urls.txt", "other.txt")

	n := 0
	b.work("mirror-1", func(c frontier.Claim) frontier.Ack {
		if n++; n == 1 {
			return frontier.Ack{ID: c.ID, State: crawl.Failed, Reason: "http_404", File: "failures-w-0001.jsonl"}
		}
		return completed(c)
	})
	(<-ready).wants(t, 0).says(t, "proxies: 1 added", "mirror-1 finished", "failed: http_404 1")
	(<-again).wants(t, 0).says(t, "mirror-1 finished")
	if a := b.crawl(args...).wants(t, 0).says(t, "has finished before", "mirror-1 finished"); !strings.Contains(a.stderr, "1 unchanged") {
		t.Errorf("the proxies were imported anew: %s", a.stderr)
	}
	b.crawl("--urls", b.file("third.txt", urlList(2)), "--proxies", proxies, "--name", "mirror").
		wants(t, 2).says(t, "has ended", "other input", "--new-run")
}

func TestCrawlChecksBothListsBeforeItImportsAny(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	good, bad := b.file("proxies.txt", "10.0.0.1:80\n"), b.file("bad.txt", "10.0.0.1\n")
	b.crawl("--urls", b.file("urls.txt", "nonsense\n"), "--proxies", good).wants(t, 2).says(t, "urls.txt:1:")
	b.crawl("--urls", b.file("urls.txt", urlList(1)), "--proxies", bad).wants(t, 2).says(t, "bad.txt:1:")
	b.crawl("--urls", b.file("urls.txt", urlList(1)), "--proxies", good, "--direct").wants(t, 2).says(t, "--direct")
	if keys := b.redis.Keys(); len(keys) > 0 {
		t.Errorf("Redis was written to: %v", keys)
	}
}

func TestServicesThatAreNotRunningAreNamedWithWhatStartsThem(t *testing.T) {
	t.Parallel()
	env := cli.Env{Name: "holdfast", Services: func(context.Context) (cli.Services, error) {
		return cli.Services{}, &cli.Failure{Code: "unreachable", Message: "nothing runs on holdfast-data", Hint: "start it: holdfast up", Exit: cli.ExitUnreachable}
	}}
	var errs safeBuffer
	env.Stderr = &errs
	if code := cli.Run(t.Context(), []string{"campaign", "list"}, env); code != cli.ExitUnreachable || !strings.Contains(errs.String(), "start it: holdfast up") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
