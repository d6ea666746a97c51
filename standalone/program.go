package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/embedded"
	"holdfast/starter/cli"
)

// program is one command line of the all-in-one.
type program struct {
	env  cli.Env
	app  *cli.App
	root *cobra.Command
	data string
	// running are the services of this very process, while it has some.
	running *services
}

// services tells the starter's commands where to connect: to this process' own
// parts, or to those that another process runs on the data directory.
func (p *program) services(context.Context) (cli.Services, error) {
	if p.running != nil {
		return p.running.at, nil
	}
	if !embedded.Running(p.data) {
		return cli.Services{}, &cli.Failure{
			Code: "unreachable", Exit: cli.ExitUnreachable,
			Message: fmt.Sprintf("nothing runs on the data directory %s", p.absData()),
			Hint:    "start it with " + p.env.Name + " up" + p.dataFlag() + ", or name another with --data",
		}
	}
	ports, err := embedded.ReadPorts(p.data)
	if err != nil {
		return cli.Services{}, &cli.Failure{Code: "bad_input", Exit: cli.ExitUsage, Message: err.Error(), Hint: "name another directory with --data"}
	}
	return cli.Services{
		Address: loopback(ports.Temporal), Namespace: "default",
		Redis: "redis://" + loopback(ports.Redis), Started: p.env.Name + " up" + p.dataFlag(),
	}, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (p *program) absData() string {
	abs, err := filepath.Abs(p.data)
	if err != nil {
		return p.data
	}
	return abs
}

// dataFlag is what a hint adds so that it names the same directory.
func (p *program) dataFlag() string {
	if f := p.root.PersistentFlags().Lookup("data"); f != nil && f.Changed {
		return " --data " + p.data
	}
	return ""
}

func (p *program) lookup(key, fallback string) string {
	for _, kv := range p.env.Environ() {
		if v, ok := strings.CutPrefix(kv, key+"="); ok && v != "" {
			return v
		}
	}
	return fallback
}

// flag returns a global flag's value, or its variable's.
func (p *program) flag(name, variable string) string {
	if v := p.root.PersistentFlags().Lookup(name).Value.String(); v != "" {
		return v
	}
	return p.lookup(variable, "")
}

func (p *program) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.env.Stdout, format, args...)
}

// note writes a remark for people.
func (p *program) note(format string, args ...any) {
	if p.root.PersistentFlags().Lookup("quiet").Value.String() != "true" {
		_, _ = fmt.Fprintf(p.env.Stderr, format+"\n", args...)
	}
}
