package results

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"strconv"
	"strings"

	"holdfast/internal/crawl"
)

func hashKey(k crawl.RecordKey) [16]byte {
	h := sha256.Sum256([]byte(k.ID + "/" + strconv.Itoa(k.Replay)))
	return [16]byte(h[:16])
}

// LatestRun returns the number of a campaign's newest run under dir. No such
// campaign: fs.ErrNotExist.
func LatestRun(dir, campaign string) (int, error) {
	if err := checkCampaign(campaign); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, fmt.Errorf("open results: %w", err)
	}
	defer func() { _ = root.Close() }()
	return latestRun(root, campaign)
}

func latestRun(root *os.Root, campaign string) (int, error) {
	b, err := root.ReadFile(path.Join(campaign, latestFile))
	if err != nil {
		return 0, fmt.Errorf("read latest: %w", err)
	}
	n, ok := numberOf(strings.TrimSpace(string(b)), "run", "")
	if !ok {
		return 0, fmt.Errorf("%w: latest of %s", ErrName, campaign)
	}
	return n, nil
}

// Records reads the records of a run's stream (All: both, pages first), file by
// file in the order of their names, each key once. A line still being written is
// passed over; one that is no record is given as an error that names file and
// line, and reading goes on behind it if the consumer wants. Needs some 40 bytes
// of memory a record.
func Records(dir, campaign string, run int, stream Stream) iter.Seq2[crawl.Record, error] {
	return func(yield func(crawl.Record, error) bool) {
		rel, err := runPath(campaign, run)
		if err != nil {
			yield(crawl.Record{}, err)
			return
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			yield(crawl.Record{}, fmt.Errorf("open results: %w", err))
			return
		}
		defer func() { _ = root.Close() }()
		files, err := recordFiles(root, rel, stream)
		if err != nil {
			yield(crawl.Record{}, fmt.Errorf("list record files: %w", err))
			return
		}
		seen := make(map[[16]byte]struct{})
		for _, file := range files {
			if !readFile(root, rel, file, seen, yield) {
				return
			}
		}
	}
}

var errStop = errors.New("results: consumer has enough")

// readFile yields one file's records; false when the consumer has enough.
func readFile(root *os.Root, dir, file string, seen map[[16]byte]struct{}, yield func(crawl.Record, error) bool) bool {
	f, err := root.Open(path.Join(dir, file))
	if err != nil {
		return yield(crawl.Record{}, fmt.Errorf("open record file: %w", err))
	}
	defer func() { _ = f.Close() }()
	_, err = decodeLines(f, file, 0, seen, yield)
	if errors.Is(err, errStop) {
		return false
	}
	if err != nil {
		return yield(crawl.Record{}, fmt.Errorf("read %s: %w", file, err))
	}
	return true
}

// decodeLines yields the whole lines of r that are not in seen and returns their
// size together. n is the number of lines before r, for errors.
func decodeLines(r io.Reader, file string, n int, seen map[[16]byte]struct{}, yield func(crawl.Record, error) bool) (int64, error) {
	size, _, err := lines(r, func(line []byte) error {
		n++
		var rec crawl.Record
		if err := json.Unmarshal(line, &rec); err != nil || rec.ID == "" {
			if !yield(crawl.Record{}, fmt.Errorf("%s:%d: not a record", file, n)) {
				return errStop
			}
			return nil
		}
		h := hashKey(rec.Key())
		if _, again := seen[h]; again {
			return nil
		}
		seen[h] = struct{}{}
		if !yield(rec, nil) {
			return errStop
		}
		return nil
	})
	return size, err
}
