package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"go.temporal.io/server/common/headers"
)

const lockPatience = 250 * time.Millisecond

// schemaVersion is that of the data directory's layout.
const schemaVersion = 1

const (
	lockFile    = "LOCK"
	versionFile = "VERSION"
	readmeFile  = "README.txt"
	temporalDir = "temporal"
	redisDir    = "redis"
	logsDir     = "logs"
)

// dataDir is a locked data directory.
type dataDir struct {
	path  string // absolute
	lock  *flock.Flock
	isNew bool
}

// openDir makes, locks and checks the directory.
func openDir(path, program string) (_ *dataDir, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	d := &dataDir{path: path, lock: flock.New(filepath.Join(path, lockFile))}
	if err := d.foreign(); err != nil {
		return nil, err
	}
	// A moment's patience: a command that only looks whether somebody runs here
	// holds the lock for that moment.
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	held, err := d.lock.TryLockContext(ctx, lockPatience/10)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if !held {
		return nil, &LockedError{Dir: path, PID: readPID(d.file(lockFile))}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.lock.Unlock())
		}
	}()
	if err := os.WriteFile(d.file(lockFile), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := os.Chmod(path, 0o700); err != nil { // its journal holds credentials
		return nil, fmt.Errorf("close data directory to others: %w", err)
	}
	if err := d.checkVersion(); err != nil {
		return nil, err
	}
	for _, sub := range []string{temporalDir, redisDir, logsDir} {
		if err := os.MkdirAll(d.file(sub), 0o700); err != nil {
			return nil, fmt.Errorf("make data directory: %w", err)
		}
	}
	if err := writeFile(d.file(readmeFile), readme(program)); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *dataDir) file(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

func (d *dataDir) close() error {
	if err := d.lock.Unlock(); err != nil {
		return fmt.Errorf("unlock data directory: %w", err)
	}
	return nil
}

// foreign refuses a directory that holds other things than ours. A stopped first
// start leaves LOCK alone: VERSION is written before all else.
func (d *dataDir) foreign() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	found := ""
	for _, e := range entries {
		switch e.Name() {
		case versionFile:
			return nil
		case lockFile, versionFile + tmpSuffix:
		default:
			found = e.Name()
		}
	}
	if found != "" {
		return &ForeignDirError{Dir: d.path, Found: found}
	}
	return nil
}

// checkVersion stamps a new directory and refuses one of another version. A
// Temporal database's visibility tables cannot be upgraded in place, so there any
// other version is refused; without a database the stamp is renewed.
func (d *dataDir) checkVersion() error {
	stamp := fmt.Sprintf("holdfast-data %d\ntemporal %s\n", schemaVersion, headers.ServerVersion)
	text, err := os.ReadFile(d.file(versionFile))
	if errors.Is(err, fs.ErrNotExist) {
		d.isNew = true
		return writeFile(d.file(versionFile), stamp)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", versionFile, err)
	}
	have := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		have[key] = value
	}
	if v := have["holdfast-data"]; v != strconv.Itoa(schemaVersion) {
		return &VersionError{Dir: d.path, What: "holdfast data", Have: orNone(v), Want: strconv.Itoa(schemaVersion)}
	}
	v := have["temporal"]
	if v == headers.ServerVersion {
		return nil
	}
	if _, err := os.Stat(d.file(temporalDir, historyDB)); errors.Is(err, fs.ErrNotExist) {
		return writeFile(d.file(versionFile), stamp)
	}
	return &VersionError{Dir: d.path, What: "temporal", Have: orNone(v), Want: headers.ServerVersion}
}

func orNone(v string) string {
	if v == "" {
		return "(none)"
	}
	return v
}

func readPID(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

const tmpSuffix = ".tmp"

// writeFile replaces a small file at once.
func writeFile(path, text string) error {
	tmp := path + tmpSuffix
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

func readme(program string) string {
	return `This directory is the memory of ` + program + `: crawls go on from here.

  temporal/   the workflows, in two SQLite databases
  redis/      proxies, hosts and URLs: a snapshot and the journal since then.
              Proxy passwords are in it; that is why only you may read this.
  logs/       of the Temporal server
  ports.json  where the parts listen while the program runs, on 127.0.0.1
  VERSION     what wrote this; another version may refuse it
  LOCK        held by the process that uses it

Copy it only while nothing runs. Delete it to forget all crawls; results are elsewhere.
`
}
