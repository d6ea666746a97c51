package cli_test

import (
	"encoding/json"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"holdfast/starter/cli"
)

type checks struct {
	OK     bool
	Checks []cli.Check
}

func (b *bench) checks(code int, args ...string) map[string]cli.Check {
	b.t.Helper()
	a := b.run(append(args, "--output", "json")...).wants(b.t, code)
	var got checks
	if err := json.Unmarshal([]byte(a.stdout), &got); err != nil {
		b.t.Fatalf("%v in %q", err, a.stdout)
	}
	out := map[string]cli.Check{}
	for _, c := range got.Checks {
		out[c.Name] = c
	}
	return out
}

func TestSetupRegistersWhatIsMissingOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	clear(b.fake.attributes)
	if got := b.checks(0, "setup")["search attributes"]; got.Status != cli.CheckDone {
		t.Errorf("first setup: %+v", got)
	}
	for _, attr := range []string{"HoldfastCampaign", "HoldfastHost", "HoldfastReason"} {
		if b.fake.attributes[attr] != enumspb.INDEXED_VALUE_TYPE_KEYWORD {
			t.Errorf("%s is not registered as Keyword: %v", attr, b.fake.attributes)
		}
	}
	if got := b.checks(0, "setup")["search attributes"]; got.Status != cli.CheckOK {
		t.Errorf("second setup: %+v", got)
	}
	if b.fake.adds != 1 {
		t.Errorf("%d registrations, want 1", b.fake.adds)
	}
	b.run("setup").wants(t, 0).says(t, "CHECK", "server 1.32.1")
}

func TestSetupRefusesAnAttributeOfAnotherType(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.fake.attributes["HoldfastHost"] = enumspb.INDEXED_VALUE_TYPE_INT
	b.run("setup").wants(t, 1).says(t, "HoldfastHost", "Keyword", "hint:")
	if b.fake.adds != 0 {
		t.Error("setup registered others beside a wrong one")
	}
}

func TestSetupNamesTheServiceThatIsAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := b.checks(3, "setup")
	if got["temporal"].Status != cli.CheckFailed || got["redis"].Status != cli.CheckOK {
		t.Errorf("%+v", got)
	}
}

func TestSetupNamesANamespaceThatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.run("setup", "--namespace", "nosuch").wants(t, 2).says(t, "no namespace \"nosuch\"", "--namespace")
}

func TestDoctorSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.fake.pollers = 0
	clear(b.fake.attributes)
	got := b.checks(1, "doctor")
	for name, want := range map[string]cli.CheckStatus{
		"temporal": cli.CheckOK, "namespace": cli.CheckOK, "search attributes": cli.CheckFailed,
		"workers on holdfast": cli.CheckWarning, "workers on holdfast-control": cli.CheckWarning,
		"redis": cli.CheckOK, "proxies": cli.CheckWarning, "results": cli.CheckWarning,
	} {
		if got[name].Status != want {
			t.Errorf("%s is %+v, want %s", name, got[name], want)
		}
	}
	if b.fake.adds != 0 {
		t.Error("doctor changed something")
	}
	b.run("setup").wants(t, 0)
	b.fake.pollers = 2
	seedPool(t, b, "10.0.0.1:80")
	if _, err := b.frontier().RegisterSink(t.Context(), "file:///srv/results"); err != nil {
		t.Fatal(err)
	}
	for name, c := range b.checks(0, "doctor") {
		if c.Status != cli.CheckOK {
			t.Errorf("%s is %+v", name, c)
		}
	}
}

func TestSetupChecksARealRedisForEvictionAndPersistence(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTemporal()
	b.set("HOLDFAST_REDIS", "redis://"+startRedis(t, "--maxmemory-policy", "allkeys-lru", "--appendonly", "no"))
	got := b.checks(1, "setup")
	if got["redis eviction"].Status != cli.CheckFailed || got["redis persistence"].Status != cli.CheckWarning {
		t.Errorf("%+v", got)
	}
	b.set("HOLDFAST_REDIS", "redis://"+startRedis(t, "--appendonly", "yes"))
	got = b.checks(0, "setup")
	if got["redis eviction"].Status != cli.CheckOK || got["redis persistence"].Status != cli.CheckOK {
		t.Errorf("%+v", got)
	}
}

func TestARedisThatWantsAPasswordSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	addr := startRedis(t, "--requirepass", "canary-secret")
	b.run("campaign", "list", "--redis", addr).wants(t, 3).says(t, "wants a password")
	a := b.run("campaign", "list", "--redis", "redis://:canary-wrong@"+addr).wants(t, 3).says(t, "refuses")
	if strings.Contains(a.stderr, "canary") {
		t.Errorf("a password was printed: %s", a.stderr)
	}
	b.run("campaign", "list", "--redis", "redis://:canary-secret@"+addr).wants(t, 0)
}

// startRedis starts a redis-server of the test's own on a free port; the test is
// skipped where there is none.
func startRedis(t *testing.T, options ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server here")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	cmd := exec.Command(path, append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", ""}, options...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "redis-server answers", func() bool {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return addr
}
