package cli

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger writes the libraries' warnings to standard error: for people on a
// terminal, as JSON otherwise. A command's own output is not a log.
func (a *App) logger() *zap.SugaredLogger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewJSONEncoder(config)
	if a.env.IsTTY(a.env.Stderr) {
		config.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(config)
	}
	level := zapcore.WarnLevel
	if a.opts.quiet {
		level = zapcore.ErrorLevel
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(a.env.Stderr)), level)
	return zap.New(core).Sugar()
}

// sdkLogger gives the Temporal SDK a zap logger.
type sdkLogger struct{ z *zap.SugaredLogger }

func (l sdkLogger) Debug(msg string, kv ...any) { l.z.Debugw(msg, kv...) }
func (l sdkLogger) Info(msg string, kv ...any)  { l.z.Infow(msg, kv...) }
func (l sdkLogger) Warn(msg string, kv ...any)  { l.z.Warnw(msg, kv...) }
func (l sdkLogger) Error(msg string, kv ...any) { l.z.Errorw(msg, kv...) }
