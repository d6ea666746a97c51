package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	historyDB    = "history.db"
	visibilityDB = "visibility.db"
)

// searchAttributes are those that workflows set; see workflows/api.go.
var searchAttributes = []string{"HoldfastCampaign", "HoldfastHost", "HoldfastReason"}

// database is the configuration of one SQLite file. WAL and synchronous=NORMAL
// are five times the throughput of the defaults; a power cut may lose the last
// commits, never the file. One connection is four times faster than eight.
func database(path string, pragmas map[string]string) *config.SQL {
	attributes := map[string]string{"mode": "rwc"}
	for k, v := range pragmas {
		attributes[k] = v
	}
	return &config.SQL{
		PluginName: sqlite.PluginName,
		// A URI's path: %, ? and # of a file name would mean something else.
		DatabaseName:      (&url.URL{Path: path}).EscapedPath(),
		ConnectAttributes: attributes,
		MaxConns:          1,
		MaxIdleConns:      1,
	}
}

func running(path string) *config.SQL {
	return database(path, map[string]string{"journal_mode": "wal", "synchronous": "normal", "busy_timeout": "10000"})
}

// makeDatabase makes the file with its tables if it is not there. It appears whole
// or not at all, whenever we are killed.
func makeDatabase(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp := path + tmpSuffix
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make database: %w", err)
	}
	// Not durable while it is made: it is synced as a whole.
	cfg := database(tmp, map[string]string{"journal_mode": "off", "synchronous": "off"})
	if err := sqliteschema.SetupSchema(cfg); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	if err := dropUnusedIndexes(cfg); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	f, err := os.OpenFile(tmp, os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	return nil
}

// makeNamespace registers the namespace if it is not there.
func makeNamespace(history *config.SQL, o Options) error {
	attributes := map[string]enumspb.IndexedValueType{}
	for _, name := range searchAttributes {
		attributes[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, o.Namespace, false, attributes)
	if err != nil {
		return fmt.Errorf("make namespace: %w", err)
	}
	ns.Detail.Config.Retention = durationpb.New(o.Retention)
	if err := sqliteschema.CreateNamespaces(history, ns); err != nil {
		return fmt.Errorf("make namespace: %w", err)
	}
	return nil
}

// databases makes what is missing and returns the configuration to run on.
func databases(d *dataDir, o Options) (history, visibility *config.SQL, err error) {
	dir := d.file(temporalDir)
	for _, name := range []string{historyDB, visibilityDB} {
		if err := makeDatabase(filepath.Join(dir, name)); err != nil {
			return nil, nil, err
		}
	}
	history, visibility = running(filepath.Join(dir, historyDB)), running(filepath.Join(dir, visibilityDB))
	return history, visibility, makeNamespace(history, o)
}
