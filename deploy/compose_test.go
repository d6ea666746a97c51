package deploy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// compose is the part of a compose file that the rules below look at.
type compose struct {
	Services map[string]service `yaml:"services"`
}

type service struct {
	Image           string            `yaml:"image"`
	Build           any               `yaml:"build"`
	ContainerName   string            `yaml:"container_name"`
	Entrypoint      []string          `yaml:"entrypoint"`
	Command         []string          `yaml:"command"`
	Environment     map[string]string `yaml:"environment"`
	Ports           []string          `yaml:"ports"`
	Profiles        []string          `yaml:"profiles"`
	Restart         string            `yaml:"restart"`
	StopGracePeriod string            `yaml:"stop_grace_period"`
	DependsOn       map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck *struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

// stays reports whether the service runs on, rather than once.
func (s service) stays() bool { return s.Restart == "unless-stopped" || s.Restart == "always" }

func parse(t *testing.T, text string) compose {
	t.Helper()
	var c compose
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("parse compose file: %v", err)
	}
	if len(c.Services) == 0 {
		t.Fatal("the compose file has no services")
	}
	return c
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// findings returns one line for each rule that a compose file breaks, sorted.
func findings(c compose) []string {
	var lines []string
	for name, s := range c.Services {
		report := func(format string, args ...any) {
			lines = append(lines, name+": "+fmt.Sprintf(format, args...))
		}
		if s.Build == nil && !pinned(s.Image) {
			report("image %q is not pinned", s.Image)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				report("port %q is published beyond loopback", port)
			}
		}
		if s.stays() && s.Healthcheck == nil {
			report("runs on without a healthcheck")
		}
		checkSecrets(s, report)
		checkDependencies(c, s, report)
	}
	slices.Sort(lines)
	return lines
}

func checkSecrets(s service, report func(string, ...any)) {
	for key, value := range s.Environment {
		if strings.Contains(key, "HOST_AUTH_METHOD") {
			report("%s lets anybody in", key)
		}
		secret := strings.Contains(key, "PASSWORD") || strings.Contains(key, "PWD")
		if secret && (!strings.HasPrefix(value, "${") || !strings.Contains(value, ":?")) {
			report("%s must come from the environment, without a default", key)
		}
	}
}

func checkDependencies(c compose, s service, report func(string, ...any)) {
	for on, d := range s.DependsOn {
		other, there := c.Services[on]
		switch {
		case !there:
			report("depends on %q, which is not there", on)
		case d.Condition == "service_healthy" && other.Healthcheck == nil:
			report("waits for %q to be healthy, which has no healthcheck", on)
		case d.Condition == "service_completed_successfully" && other.stays():
			report("waits for %q to end, which runs on", on)
		}
	}
}

// pinned reports whether an image names a version (with at least one dot) or a digest.
func pinned(image string) bool {
	if strings.Contains(image, "@sha256:") {
		return true
	}
	_, tag, ok := strings.Cut(image, ":")
	return ok && strings.Contains(tag, ".")
}

func TestTheComposeFileKeepsTheRules(t *testing.T) {
	t.Parallel()
	c := parse(t, read(t, "docker-compose.yml"))
	for _, line := range findings(c) {
		t.Error(line)
	}
	for _, name := range []string{"postgresql", "redis"} {
		if ports := c.Services[name].Ports; len(ports) > 0 {
			t.Errorf("%s publishes %v", name, ports)
		}
	}
	redis := strings.Join(c.Services["redis"].Command, " ")
	for _, want := range []string{"--appendonly yes", "--maxmemory-policy noeviction"} {
		if !strings.Contains(redis, want) {
			t.Errorf("redis runs %q, which lacks %q", redis, want)
		}
	}
	worker := c.Services["worker"]
	if worker.ContainerName != "" || len(worker.Ports) > 0 {
		t.Error("worker has a fixed name or port and so cannot be scaled")
	}
	if worker.StopGracePeriod != "45s" {
		t.Errorf("worker's stop_grace_period is %q, want 45s: its fetches get 40 s to end", worker.StopGracePeriod)
	}
	if len(c.Services["starter"].Profiles) == 0 {
		t.Error("starter has no profile, so `up` would start it")
	}
}

func TestTheRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ service, want string }{
		"an image without a tag": {
			"image: redis", `a: image "redis" is not pinned`,
		},
		"a floating tag": {
			"image: redis:latest", `a: image "redis:latest" is not pinned`,
		},
		"a port for everybody": {
			"{image: 'r:1.2', ports: ['6379:6379']}", `a: port "6379:6379" is published beyond loopback`,
		},
		"a service that runs on unwatched": {
			"{image: 'r:1.2', restart: always}", "a: runs on without a healthcheck",
		},
		"a password in the file": {
			"{image: 'r:1.2', environment: {POSTGRES_PASSWORD: temporal}}",
			"a: POSTGRES_PASSWORD must come from the environment, without a default",
		},
		"a password with a default": {
			"{image: 'r:1.2', environment: {POSTGRES_PWD: '${PW:-temporal}'}}",
			"a: POSTGRES_PWD must come from the environment, without a default",
		},
		"a database that trusts": {
			"{image: 'r:1.2', environment: {POSTGRES_HOST_AUTH_METHOD: trust}}",
			"a: POSTGRES_HOST_AUTH_METHOD lets anybody in",
		},
		"a dependency that is not there": {
			"{image: 'r:1.2', depends_on: {b: {condition: service_started}}}",
			`a: depends on "b", which is not there`,
		},
		"a dependency that can never be healthy": {
			"{image: 'r:1.2', depends_on: {a: {condition: service_healthy}}}",
			`a: waits for "a" to be healthy, which has no healthcheck`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "services:\n  a: " + tc.service + "\n"
			if !strings.HasPrefix(tc.service, "{") {
				text = "services:\n  a:\n    " + tc.service + "\n"
			}
			if got := findings(parse(t, text)); !slices.Equal(got, []string{tc.want}) {
				t.Errorf("findings = %q, want %q", got, tc.want)
			}
		})
	}
}
