package embedded

import (
	"fmt"
	"io"
	"os"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logLimit is the size past which the log of an earlier start is put aside; one
// is kept.
const logLimit = 16 << 20

// openLog opens the Temporal server's log, JSON, warnings and worse. Nothing of
// the server's goes to the terminal. Its fatal errors are logged and do not end
// the process: that is for main to decide.
func openLog(path string) (log.Logger, func() error, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, nil, fmt.Errorf("put log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.Lock(f), zapcore.WarnLevel)
	// Goroutines that outlive the server's Stop find the file closed: not an event.
	lost := zap.ErrorOutput(zapcore.AddSync(io.Discard))
	zl := zap.New(core, lost, zap.WithFatalHook(goOn{}), zap.WithPanicHook(goOn{}))
	return log.NewZapLogger(zl), f.Close, nil
}

// goOn is what happens after a fatal entry: nothing.
type goOn struct{}

func (goOn) OnWrite(*zapcore.CheckedEntry, []zapcore.Field) {}
