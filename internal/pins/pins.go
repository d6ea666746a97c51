//go:build pins

// Package pins keeps modules in go.mod until the code that uses them lands.
package pins

import (
	_ "code.dny.dev/ssrf"
	_ "github.com/alicebob/miniredis/v2"
	_ "github.com/andybalholm/brotli"
	_ "github.com/goccy/go-yaml"
	_ "github.com/gofrs/flock"
	_ "github.com/jedib0t/go-pretty/v6/progress"
	_ "github.com/jedib0t/go-pretty/v6/table"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/nlnwa/whatwg-url/url"
	_ "github.com/redis/go-redis/v9"
	_ "github.com/spf13/cobra"
	_ "github.com/temporalio/ui-server/v2/server"
	_ "go.temporal.io/sdk/client"
	_ "go.temporal.io/sdk/contrib/envconfig"
	_ "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	_ "go.temporal.io/server/temporal"
	_ "go.uber.org/goleak"
	_ "go.uber.org/zap"
	_ "golang.org/x/net/html/charset"
	_ "golang.org/x/net/proxy"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
	_ "pgregory.net/rapid"
)
