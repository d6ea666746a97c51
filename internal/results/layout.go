package results

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/internal/crawl"
)

// Stream is one of the two series of record files of a run.
type Stream string

// The streams. All is for readers: both, pages first.
const (
	Pages    Stream = "pages"
	Failures Stream = "failures"
	All      Stream = ""
)

// StreamOf returns the stream that a record in state s belongs to.
func StreamOf(s crawl.State) Stream {
	if s == crawl.Completed {
		return Pages
	}
	return Failures
}

// ErrName is wrapped by refusals of a campaign's name, a run's number, a file's
// name or a body's path that would not be one of ours on disk.
var ErrName = errors.New("results: unusable name")

const (
	latestFile = "latest"
	runFile    = "run.json"
	yamlFile   = "campaign.yaml"
	tmpDir     = ".tmp"
	lockFile   = "lock"
	lineExt    = ".jsonl"
	maxName    = 128
)

// RunDir returns the folder of a campaign's run under dir: "dir/docs/run-0001".
func RunDir(dir, campaign string, run int) string {
	return filepath.Join(dir, campaign, runName(run))
}

func runName(run int) string { return fmt.Sprintf("run-%04d", run) }

// runPath is RunDir relative to the sink's root, after checking both parts.
func runPath(campaign string, run int) (string, error) {
	if err := checkCampaign(campaign); err != nil {
		return "", err
	}
	if run < 1 {
		return "", fmt.Errorf("%w: run %d", ErrName, run)
	}
	return path.Join(campaign, runName(run)), nil
}

func checkCampaign(name string) error {
	bad := func(r rune) bool {
		return r == '/' || r == '\\' || r == ':' || r == utf8.RuneError || unicode.IsControl(r)
	}
	if name == "" || len(name) > maxName || name[0] == '.' || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%w: campaign %q", ErrName, name)
	}
	return nil
}

// cleanWorker makes a worker's name fit for a file's: letters, digits, dot, dash
// and underscore stay, every other byte becomes an underscore. Two workers that
// come out alike share a numbering, which is safe: files are opened exclusively.
func cleanWorker(name string) string {
	b := []byte(strings.TrimLeft(name, "."))
	for i, c := range b {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
		if !ok {
			b[i] = '_'
		}
	}
	if len(b) > 64 {
		b = b[:64]
	}
	if len(b) == 0 {
		return "worker"
	}
	return string(b)
}

// numbered returns "prefix-0007" plus ext.
func numbered(prefix string, n int, ext string) string {
	return fmt.Sprintf("%s-%04d%s", prefix, n, ext)
}

// numberOf is the reverse of numbered; false for a name of another form.
func numberOf(name, prefix, ext string) (int, bool) {
	rest, ok := strings.CutPrefix(name, prefix+"-")
	if !ok {
		return 0, false
	}
	digits, ok := strings.CutSuffix(rest, ext)
	if !ok || len(digits) < 4 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// streamOfFile tells a record file's stream by its name, false for other files.
func streamOfFile(name string) (Stream, bool) {
	if !strings.HasSuffix(name, lineExt) || path.Base(name) != name {
		return "", false
	}
	for _, s := range []Stream{Pages, Failures} {
		if strings.HasPrefix(name, string(s)+"-") {
			return s, true
		}
	}
	return "", false
}

// bodyPath is the place of a body within its run's folder.
func bodyPath(sum string) string {
	return path.Join("bodies", sum[0:2], sum[2:4], sum+".zst")
}

// checkBodyPath refuses a path that bodyPath would not give.
func checkBodyPath(p string) error {
	sum := strings.TrimSuffix(path.Base(p), ".zst")
	if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" || p != bodyPath(sum) {
		return fmt.Errorf("%w: body path %q", ErrName, p)
	}
	return nil
}

// recordFiles lists the record files of stream in a run's folder, sorted.
func recordFiles(root *os.Root, run string, stream Stream) ([]string, error) {
	entries, err := readDir(root, run)
	if err != nil {
		return nil, err
	}
	var pages, failures []string
	for _, e := range entries {
		switch s, _ := streamOfFile(e.Name()); {
		case !e.Type().IsRegular():
		case s == Pages:
			pages = append(pages, e.Name())
		case s == Failures:
			failures = append(failures, e.Name())
		}
	}
	switch stream {
	case Pages:
		return pages, nil
	case Failures:
		return failures, nil
	}
	return append(pages, failures...), nil
}
