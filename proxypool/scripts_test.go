package proxypool_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestScriptsAreDeterministicAndSayWhatTheyTake(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("scripts/*.lua")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	forbidden := regexp.MustCompile(`math\.random|\bpairs\(|'(SPOP|SRANDMEMBER|HRANDFIELD|SCAN|HSCAN|KEYS|EXPIRE|PEXPIRE)'|cmsgpack|os\.(time|clock)`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		src, name := string(b), strings.TrimSuffix(filepath.Base(f), ".lua")
		if m := forbidden.FindString(src); m != "" {
			t.Errorf("%s uses %s", f, m)
		}
		if !strings.HasPrefix(src, "-- "+name+": ") {
			t.Errorf("%s does not begin with its name and purpose", f)
		}
		if strings.HasPrefix(name, "lib_") {
			continue
		}
		for _, want := range []string{"\n-- ARGV: ", "\n-- Output: ", "\n-- Invariant: "} {
			if !strings.Contains(src, want) {
				t.Errorf("%s lacks %q in its header", f, strings.TrimSpace(want))
			}
		}
	}
}
