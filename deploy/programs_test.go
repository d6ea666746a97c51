package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/internal/arch"
)

// invocation is one command line of ours in a compose file.
type invocation struct {
	where   string
	program string
	args    []string
}

// invocations returns the command lines that run a program of ours: entrypoint
// with command, and healthchecks.
func invocations(c compose) []invocation {
	var all []invocation
	for name, s := range c.Services {
		if s.Build == nil {
			continue
		}
		lines := map[string][]string{name: append(append([]string{}, s.Entrypoint...), s.Command...)}
		if s.Healthcheck != nil && len(s.Healthcheck.Test) > 1 {
			lines[name+"'s healthcheck"] = s.Healthcheck.Test[1:]
		}
		for where, line := range lines {
			if len(line) > 0 {
				all = append(all, invocation{where, filepath.Base(line[0]), line[1:]})
			}
		}
	}
	return all
}

// command splits the leading command words from the flags that follow.
func (i invocation) command() (words, flags []string) {
	for n, arg := range i.args {
		if strings.HasPrefix(arg, "-") {
			for _, rest := range i.args[n:] {
				if flag, _, _ := strings.Cut(rest, "="); strings.HasPrefix(flag, "-") {
					flags = append(flags, flag)
				}
			}
			return i.args[:n], flags
		}
	}
	return i.args, nil
}

// programs builds the two programs and returns the folder that holds them.
func programs(t *testing.T) string {
	t.Helper()
	if err := arch.Watch(".."); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for program, folder := range map[string]string{"holdfast-worker": "worker", "holdfast-starter": "starter"} {
		if _, err := os.Stat("../" + folder); err != nil {
			t.Skipf("%s has no program yet", folder)
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, program), "./"+folder)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", program, err, out)
		}
	}
	return dir
}

// help returns what `program words… --help` prints.
func help(t *testing.T, dir, program string, words []string) string {
	t.Helper()
	args := append(append([]string{}, words...), "--help")
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, program), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// unknown returns what of a command line a help text does not mention.
func unknown(text, program string, words, flags []string) []string {
	var lacking []string
	// cobra answers an unknown command with the help of the one above it.
	usage := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(strings.Join(append([]string{program}, words...), " ")) + `\b`)
	if len(words) > 0 && !usage.MatchString(text) {
		lacking = append(lacking, strings.Join(words, " "))
	}
	for _, flag := range flags {
		if !regexp.MustCompile(`(?m)(^|[\s,])` + regexp.QuoteMeta(flag) + `([\s,=]|$)`).MatchString(text) {
			lacking = append(lacking, flag)
		}
	}
	return lacking
}

func TestTheProgramsAcceptWhatTheComposeFileGives(t *testing.T) {
	t.Parallel()
	c := parse(t, read(t, "docker-compose.yml"))
	all := invocations(c)
	if len(all) < 4 {
		t.Fatalf("found %d command lines of ours, want setup, worker, its healthcheck and starter", len(all))
	}
	dir := programs(t)
	for _, i := range all {
		words, flags := i.command()
		for _, what := range unknown(help(t, dir, i.program, words), i.program, words, flags) {
			t.Errorf("%s: %s does not know %q", i.where, i.program, what)
		}
	}
	// A variable that no program reads would be a setting without effect.
	both := help(t, dir, "holdfast-worker", nil) + help(t, dir, "holdfast-starter", nil)
	for name, s := range c.Services {
		for key := range s.Environment {
			if s.Build != nil && !regexp.MustCompile(`\b`+key+`\b`).MatchString(both) {
				t.Errorf("%s: neither program's help names %s", name, key)
			}
		}
	}
}

func TestUnknownFindsWhatAHelpTextDoesNotMention(t *testing.T) {
	t.Parallel()
	const text = "Registers search attributes\n\nUsage:\n  holdfast-starter setup [flags]\n\nFlags:\n  -q, --quiet       no progress\n      --redis string   Redis\n"
	for name, tc := range map[string]struct {
		words, flags []string
		want         string
	}{
		"all of it known":            {[]string{"setup"}, []string{"--quiet", "--redis"}, ""},
		"a command that is not":      {[]string{"set-up"}, nil, "set-up"},
		"a flag that is not":         {[]string{"setup"}, []string{"--silent"}, "--silent"},
		"a flag that only begins so": {[]string{"setup"}, []string{"--red"}, "--red"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(unknown(text, "holdfast-starter", tc.words, tc.flags), " "); got != tc.want {
				t.Errorf("unknown = %q, want %q", got, tc.want)
			}
		})
	}
}
