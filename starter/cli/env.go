package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"holdfast/internal/version"
)

// Env is the world of a command line: everything a command reads or writes that
// is not Temporal or Redis.
type Env struct {
	// Name is what the program was called by; help and hints show it. Default "starter".
	Name string
	// Version is the program's own, for `version`. Default version.Version.
	Version string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Environ returns the environment as os.Environ does. Default: empty.
	Environ func() []string
	// IsTTY reports whether one of the three streams is a terminal. Default: none is.
	IsTTY func(stream any) bool
	// Width returns the terminal's width in columns, 0 if there is none.
	Width func() int
	// Now is the clock of what is shown (ETA, ages). Default time.Now.
	Now func() time.Time
	// Every is the time between two looks of a command that watches. Default 1 s.
	Every time.Duration
	// Services finds the services that no flag and no variable names; standalone
	// reads them from its data folder. Nil: the usual local ports. An error of
	// type *Failure is shown as it is.
	Services func(ctx context.Context) (Services, error)
	// DialTemporal replaces the connection to Temporal, for tests and for a
	// process that holds a client already. The client is closed by the command.
	DialTemporal func(ctx context.Context, o client.Options) (client.Client, error)
}

// Services says where the two services are.
type Services struct {
	// Address is Temporal's, host:port. Default 127.0.0.1:7233.
	Address string
	// Namespace is Temporal's namespace. Default "default".
	Namespace string
	// Redis is a redis:// or rediss:// URL, or host:port. Default redis://127.0.0.1:6379.
	Redis string
	// Started is the command that starts the services, for the hint of an
	// unreachable one: "holdfast up".
	Started string
}

// withDefaults returns e with every field that was left out set.
func (e Env) withDefaults() Env {
	if e.Name == "" {
		e.Name = "starter"
	}
	if e.Version == "" {
		e.Version = version.Version
	}
	if e.Stdin == nil {
		e.Stdin = strings.NewReader("")
	}
	if e.Stdout == nil {
		e.Stdout = io.Discard
	}
	if e.Stderr == nil {
		e.Stderr = io.Discard
	}
	if e.Environ == nil {
		e.Environ = func() []string { return nil }
	}
	if e.IsTTY == nil {
		e.IsTTY = func(any) bool { return false }
	}
	if e.Width == nil {
		e.Width = func() int { return 0 }
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Every <= 0 {
		e.Every = time.Second
	}
	return e
}

// lookup returns the last value of a variable, and false where it is unset.
func (e Env) lookup(key string) (string, bool) {
	value, found := "", false
	for _, kv := range e.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			value, found = v, true
		}
	}
	return value, found
}

// getenv returns a variable's value, "" where it is unset.
func (e Env) getenv(key string) string {
	v, _ := e.lookup(key)
	return v
}

// envLookup is an Env as the Temporal SDK's configuration loader reads it.
type envLookup struct{ env Env }

func (l envLookup) Environ() []string                   { return l.env.Environ() }
func (l envLookup) LookupEnv(key string) (string, bool) { return l.env.lookup(key) }
