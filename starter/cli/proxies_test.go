package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/proxypool"
	"holdfast/starter/cli"
)

const canary = "c4nary-pa55"

func TestProxiesAreImportedListedAndShownWithoutACredential(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var printed strings.Builder
	run := func(stdin string, args ...string) answer {
		a := b.runWith(t.Context(), stdin, args...)
		printed.WriteString(a.stdout + a.stderr)
		return a.wants(t, 0)
	}
	list := b.file("proxies.txt", "10.0.0.1:8080:user:"+canary+"\nsocks5h://user:"+canary+"@10.0.0.2:1080\nhttp://10.0.0.3:80\n")
	run("", "proxies", "import", list, "--dry-run").says(t, "would be imported: 3 added")
	if a := run("", "proxies", "list", "--output", "json"); a.stdout != "[]\n" {
		t.Errorf("a dry run left %s", a.stdout)
	}
	run("", "proxies", "import", list, "--source", "vendor-a", "--tag", "gold", "--region", "de", "--min-reuse", "2s").
		says(t, "imported: 3 added, 0 updated, 0 unchanged")
	run("10.0.0.3:80\n10.0.0.4:80\n10.0.0.4:80\n", "proxies", "import", "-", "--source", "vendor-a", "--tag", "gold", "--region", "de", "--min-reuse", "2s").
		says(t, "1 added, 0 updated, 1 unchanged, 1 repeated")
	a := run("", "proxies", "list", "--output", "json", "--tag", "gold", "--region", "de")
	var views []cli.ProxyView
	if err := json.Unmarshal([]byte(a.stdout), &views); err != nil || len(views) != 4 {
		t.Fatalf("%v, %d in %s", err, len(views), a.stdout)
	}
	if v := views[0]; v.State != proxypool.StateActive || v.Source != "vendor-a" || v.MinReuseMS != 2000 || strings.Contains(a.stdout, `"min_reuse":`) {
		t.Errorf("%+v in %s", v, a.stdout)
	}
	id := views[0].ID
	run("", "proxies", "list").says(t, "active", "vendor-a", "gold", "0/1")
	run("", "proxies", "show", id).says(t, id, "samples")
	run("", "proxies", "show", id, "--output", "json").says(t, `"leases":[]`)
	run("", "proxies", "leases").says(t, "no lease is open")
	run("", "proxies", "quarantine", id).says(t, "quarantined "+id)
	if a := run("", "proxies", "list", "--state", "quarantined"); !strings.Contains(a.stdout, id) {
		t.Errorf("%s is not quarantined: %s", id, a.stdout)
	}
	run("", "proxies", "restore", id, "--output", "json").says(t, `{"restored":["`+id+`"]}`)
	if strings.Contains(printed.String(), canary) {
		t.Errorf("a credential was printed: %s", printed.String())
	}
	b.run("proxies", "list", "--state", "tired").wants(t, 2)
}

func TestProxiesLeasesShowsWhoUsesWhat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seedPool(t, b, "10.0.0.1:80")
	got, err := b.pool().Acquire(t.Context(), proxypool.AcquireRequest{LeaseID: "docs-1/ab/r/1", Holder: "h", Claimant: "docs-1/ab", Host: "example.org:443"})
	if err != nil || got.Grant == nil {
		t.Fatalf("%+v %v", got, err)
	}
	b.run("proxies", "leases").wants(t, 0).says(t, "docs-1/ab/r/1", got.Grant.Proxy.ID, "example.org:443")
	b.run("proxies", "show", got.Grant.Proxy.ID).wants(t, 0).says(t, "docs-1/ab/r/1", "1 of 1")
}

func TestColoursAreForTerminalsWithoutNOCOLOR(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seedPool(t, b, "10.0.0.1:80")
	if a := b.run("proxies", "list"); strings.Contains(a.stdout, "\x1b[") {
		t.Errorf("colours off a terminal: %q", a.stdout)
	}
	b.env.IsTTY = func(any) bool { return true }
	if a := b.run("proxies", "list"); !strings.Contains(a.stdout, "\x1b[") {
		t.Errorf("no colours on a terminal: %q", a.stdout)
	}
	b.set("NO_COLOR", "1")
	if a := b.run("proxies", "list"); strings.Contains(a.stdout, "\x1b[") {
		t.Errorf("colours in spite of NO_COLOR: %q", a.stdout)
	}
}
