package e2e_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"holdfast/internal/crawl"
)

// readLines reads a record file; a line that is no record fails the test.
func readLines(t *testing.T, file string) []crawl.Record {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	var out []crawl.Record
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for n := 1; lines.Scan(); n++ {
		var r crawl.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Errorf("%s:%d is no record: %v", file, n, err)
			continue
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
