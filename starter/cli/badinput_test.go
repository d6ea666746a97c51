package cli_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/proxypool"
)

func TestBadInputIsOneClearErrorAndNothingIsDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		stdin string
		// temporal starts a frontend: the case is found out behind it.
		temporal bool
		args     string
		code     int
		says     []string
	}{
		{
			name: "a URL list with a bad line", files: map[string]string{"urls.txt": "http://127.0.0.1/a\nnot a url\nhttp://127.0.0.1/b\nftp://x/\n"},
			args: "campaign start --name n --urls urls.txt --direct", code: 2, says: []string{"urls.txt:2:", "urls.txt:4:", "hint:"},
		},
		{name: "an empty list", files: map[string]string{"urls.txt": "# none\n"}, args: "campaign start --name n --urls urls.txt --direct", code: 2, says: []string{"holds no URL"}},
		{name: "a list that is not there", args: "campaign start --name n --urls missing.txt --direct", code: 2, says: []string{"missing.txt cannot be read", "no such file"}},
		{name: "a bad line on standard input", stdin: "http://127.0.0.1/\nx y\n", args: "campaign start --name n --urls - --direct", code: 2, says: []string{"standard input:2:"}},
		{name: "no list", args: "campaign start --name n --direct", code: 2, says: []string{"needs --urls"}},
		{name: "no name", files: map[string]string{"urls.txt": "http://127.0.0.1/\n"}, args: "campaign start --urls urls.txt", code: 2, says: []string{"--name"}},
		{name: "a name that is none", files: map[string]string{"urls.txt": "http://127.0.0.1/\n"}, args: "campaign start --name ../x --urls urls.txt", code: 2, says: []string{"not a campaign's name"}},
		{name: "no contact off loopback", files: map[string]string{"urls.txt": "http://127.0.0.1/\nhttps://example.org/\n"}, args: "campaign start --name n --urls urls.txt --direct", code: 2, says: []string{"https://example.org/ is not on loopback", "--contact"}},
		{name: "no contact for a scrape off loopback", args: "scrape https://example.org/ --direct", code: 2, says: []string{"--contact"}},
		{name: "a contact that reaches nobody", args: "scrape https://example.org/ --direct --contact me", code: 2, says: []string{"neither a URL nor a mail address"}},
		{name: "a URL with a password", args: "scrape http://user:hunter2@127.0.0.1/ --direct", code: 2, says: []string{"error:"}},
		{name: "no proxy matches", temporal: true, files: map[string]string{"urls.txt": "http://127.0.0.1/\n"}, args: "campaign start --name n --urls urls.txt --tag gold", code: 2, says: []string{"none of the pool's 1 proxies", "--direct"}},
		{name: "a proxy file with a bad line", files: map[string]string{"p.txt": "10.0.0.1:80\nuser:hunter2@10.0.0.1:port\n10.0.0.2:81:u\n"}, args: "proxies import p.txt", code: 2, says: []string{"p.txt:2:", "p.txt:3:", "nothing was imported"}},
		{name: "a proxy file with a bad encoding", files: map[string]string{"p.txt": "a%6q:hunter2@10.0.0.1:80\n"}, args: "proxies import p.txt", code: 2, says: []string{"p.txt:1:"}},
		{name: "a proxy file that is not there", args: "proxies import missing.txt", code: 2, says: []string{"missing.txt cannot be read"}},
		{name: "a tag that cannot be one", files: map[string]string{"p.txt": "10.0.0.9:80\n"}, args: "proxies import p.txt --tag a|b", code: 2, says: []string{"tag"}},
		{name: "a limit of nothing", files: map[string]string{"urls.txt": "http://127.0.0.1/\n"}, args: "campaign start --name n --urls urls.txt --direct --per-host 0", code: 2, says: []string{"--per-host is 0"}},
		{name: "robots neither obeyed nor ignored", args: "scrape http://127.0.0.1/ --robots maybe", code: 2, says: []string{"--robots"}},
		{name: "direct and a choice of proxies", args: "scrape http://127.0.0.1/ --direct --region de", code: 2, says: []string{"--direct uses no proxy"}},
		{name: "an output that is none", args: "campaign list --output yaml", code: 2, says: []string{"--output is \"yaml\""}},
		{name: "an unknown flag", args: "campaign list --bogus", code: 2, says: []string{"--bogus", "campaign list --help"}},
		{name: "an unknown command", args: "campain list", code: 2, says: []string{"campain"}},
		{name: "an unknown subcommand", args: "campaign begin", code: 2, says: []string{"begin"}},
		{name: "a missing argument", args: "campaign status", code: 2, says: []string{"needs a campaign's name"}},
		{name: "an argument too many", args: "campaign status a b", code: 2, says: []string{"one too many"}},
		{name: "a campaign that is not there", args: "campaign status nosuch", code: 2, says: []string{"no campaign \"nosuch\"", "campaign list"}},
		{name: "a proxy that is not there", args: "proxies quarantine p99", code: 2, says: []string{"p99", "proxies list"}},
		{name: "a Redis that is not there", args: "campaign list --redis redis://user:hunter2@127.0.0.1:1/0", code: 3, says: []string{"Redis at redis://127.0.0.1:1/0", "--redis"}},
		{name: "a Redis address that is none", args: "campaign list --redis redis://:hunter2@", code: 2, says: []string{"--redis"}},
		{name: "a Temporal that is not there", files: map[string]string{"urls.txt": "http://127.0.0.1/\n"}, args: "campaign start --name n --urls urls.txt --direct", code: 3, says: []string{"Temporal at " + deadAddress, "--address"}},
		{name: "a profile that is not there", args: "setup --profile nosuch", code: 2, says: []string{"--profile"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if c.temporal {
				b.withTemporal()
			}
			seedPool(t, b, "10.9.9.9:80")
			before := b.redis.Dump()
			args := strings.Fields(c.args)
			for name, content := range c.files {
				path := b.file(name, content)
				for i, a := range args {
					if a == name {
						args[i] = path
					}
				}
			}
			start := time.Now()
			a := b.runWith(t.Context(), c.stdin, args...).wants(t, c.code).says(t, c.says...)
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("took %s", took)
			}
			if strings.Contains(a.stdout+a.stderr, "hunter2") {
				t.Errorf("a password was printed: %s%s", a.stdout, a.stderr)
			}
			if after := b.redis.Dump(); after != before {
				t.Errorf("Redis was written to:\n%s", after)
			}
			if a.stdout != "" && c.code == 2 {
				t.Errorf("standard output has %q", a.stdout)
			}
		})
	}
}

// seedPool imports proxies through the pool itself.
func seedPool(t *testing.T, b *bench, lines ...string) {
	t.Helper()
	entries, err := proxypool.ParseList(strings.NewReader(strings.Join(lines, "\n")), "list", proxypool.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.pool().Import(t.Context(), entries, proxypool.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAnErrorIsAnObjectWithOutputJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, args := range [][]string{
		{"campaign", "status", "nosuch", "--output", "json"},
		{"--output=json", "campaign", "list", "--bogus"},
		{"campaign", "list", "--output", "json", "--redis", "127.0.0.1:1"},
	} {
		a := b.run(args...)
		var got struct {
			Error struct{ Code, Message, Hint string }
		}
		if err := json.Unmarshal([]byte(a.stderr), &got); err != nil || got.Error.Code == "" || got.Error.Message == "" || got.Error.Hint == "" {
			t.Errorf("%v: %v in %q", args, err, a.stderr)
		}
	}
}

func TestAnInterruptedCommandExits130(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.runWith(ctx, "", "campaign", "list").wants(t, 130).says(t, "interrupted")
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := "redis://" + b.redis.Addr()
	b.set("HOLDFAST_REDIS", "redis://127.0.0.1:1")
	b.run("campaign", "list").wants(t, 3)
	b.run("campaign", "list", "--redis", good).wants(t, 0)
	b.run("campaign", "list", "--redis", b.redis.Addr()).wants(t, 0)
}
