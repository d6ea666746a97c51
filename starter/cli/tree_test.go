package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"holdfast/starter/cli"
)

// walk gives every command of a tree but cobra's own.
func walk(cmd *cobra.Command, fn func(*cobra.Command)) {
	if cmd.Name() == "completion" || cmd.Name() == "help" {
		return
	}
	fn(cmd)
	for _, c := range cmd.Commands() {
		walk(c, fn)
	}
}

func TestEveryCommandExplainsItselfByTheNameItWasCalledBy(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"starter", "holdfast"} {
		root := cli.New(cli.Env{Name: name})
		n := 0
		walk(root, func(c *cobra.Command) {
			n++
			if c.Short == "" || c.Example == "" || c.Long == "" {
				t.Errorf("%s lacks Short, Long or Example", c.CommandPath())
			}
			for line := range strings.Lines(c.Example) {
				if !strings.HasPrefix(strings.TrimSpace(line), name+" ") {
					t.Errorf("example of %s does not run %s: %q", c.CommandPath(), name, line)
				}
			}
			if name == "holdfast" && strings.Contains(c.Long+c.Example+c.UsageString(), "starter") {
				t.Errorf("help of %s names another program", c.CommandPath())
			}
		})
		if n < 25 {
			t.Errorf("%d commands, the tree has more", n)
		}
	}
}

func TestTheCommandsOfTheSurfaceAreThere(t *testing.T) {
	t.Parallel()
	root := cli.New(cli.Env{})
	for _, path := range []string{
		"scrape", "explain", "campaign start", "campaign add", "campaign status", "campaign watch", "campaign list",
		"campaign cancel", "failures list", "results path", "results tail", "results show", "proxies import", "proxies list",
		"proxies show", "proxies leases", "proxies quarantine", "proxies restore", "setup", "doctor", "version",
	} {
		c, rest, err := root.Find(strings.Fields(path))
		if err != nil || len(rest) > 0 || !c.Runnable() {
			t.Errorf("%s is not a command: %v", path, err)
		}
	}
	for _, flag := range []string{"address", "namespace", "profile", "redis", "contact", "output", "yes", "quiet"} {
		if root.PersistentFlags().Lookup(flag) == nil {
			t.Errorf("--%s is not a global flag", flag)
		}
	}
}

func TestExamplesParse(t *testing.T) {
	t.Parallel()
	walk(cli.New(cli.Env{}), func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			words := strings.Fields(strings.TrimSpace(line))[1:]
			for i, w := range words { // what the shell takes
				if w == "<" || w == ">" || w == "|" {
					words = words[:i]
					break
				}
			}
			found, rest, err := cli.New(cli.Env{}).Find(words)
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%q: %v", line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}

func TestCommandsAloneCarryTheGlobalFlags(t *testing.T) {
	t.Parallel()
	for _, c := range cli.Commands(cli.Env{Name: "holdfast"}) {
		if c.PersistentFlags().Lookup("redis") == nil {
			t.Errorf("%s lacks --redis", c.Name())
		}
	}
}
