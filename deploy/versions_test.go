package deploy_test

import (
	"regexp"
	"strings"
	"testing"
)

// required returns what go.mod requires of a module, without the v.
func required(t *testing.T, module string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` v(\S+)`).FindStringSubmatch(read(t, "go.mod"))
	if m == nil {
		t.Fatalf("go.mod does not require %s", module)
	}
	return m[1]
}

func TestTheImagesAreTheVersionsThatTheModulePins(t *testing.T) {
	t.Parallel()
	c := parse(t, read(t, "docker-compose.yml"))
	server, ui := required(t, "go.temporal.io/server"), required(t, "github.com/temporalio/ui-server/v2")
	for name, want := range map[string]string{
		"temporal":           "temporalio/server:" + server,
		"temporal-schema":    "temporalio/admin-tools:" + server,
		"temporal-namespace": "temporalio/admin-tools:" + server,
		"temporal-ui":        "temporalio/ui:" + ui,
	} {
		if got := c.Services[name].Image; got != want {
			t.Errorf("%s runs %s, want %s", name, got, want)
		}
	}
}

// dockerfile returns the images that the Dockerfile starts from.
func dockerfile(t *testing.T) (text string, from []string) {
	t.Helper()
	text = read(t, "Dockerfile")
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1) {
		from = append(from, m[1])
	}
	return text, from
}

func TestTheDockerfileBuildsWhatTheComposeFileRuns(t *testing.T) {
	t.Parallel()
	text, from := dockerfile(t)
	if len(from) != 2 {
		t.Fatalf("the Dockerfile has %d stages, want 2", len(from))
	}
	goVersion := regexp.MustCompile(`(?m)^go (\S+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	if want := "golang:" + goVersion + "-"; !strings.HasPrefix(from[0], want) {
		t.Errorf("the build stage is %s, want %s…: go.mod says %s", from[0], want, goVersion)
	}
	if !strings.Contains(from[1], "distroless/static") || !strings.Contains(from[1], ":nonroot@sha256:") {
		t.Errorf("the last stage is %s, want a distroless static nonroot image by digest", from[1])
	}
	for program, folder := range map[string]string{"holdfast-worker": "./worker", "holdfast-starter": "./starter"} {
		build := regexp.MustCompile(`CGO_ENABLED=0 go build .*-o /out/` + program + ` ` + regexp.QuoteMeta(folder) + `\b`)
		if !build.MatchString(text) {
			t.Errorf("the Dockerfile does not build %s statically from %s", program, folder)
		}
		if !regexp.MustCompile(`COPY --from=build .*/out/` + program + `\b.* /usr/local/bin/`).MatchString(text) {
			t.Errorf("the Dockerfile does not install %s", program)
		}
	}
}
