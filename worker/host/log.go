package host

import (
	sdklog "go.temporal.io/sdk/log"
	"go.uber.org/zap"
)

// SDKLogger returns l as the Temporal SDK's logger.
func SDKLogger(l *zap.Logger) sdklog.Logger {
	return &sdkLogger{l.WithOptions(zap.AddCallerSkip(1)).Sugar()}
}

type sdkLogger struct{ s *zap.SugaredLogger }

var _ sdklog.WithLogger = (*sdkLogger)(nil)

func (l *sdkLogger) Debug(msg string, kv ...any) { l.s.Debugw(msg, kv...) }
func (l *sdkLogger) Info(msg string, kv ...any)  { l.s.Debugw(msg, kv...) } // its info is our debug
func (l *sdkLogger) Warn(msg string, kv ...any)  { l.s.Warnw(msg, kv...) }
func (l *sdkLogger) Error(msg string, kv ...any) { l.s.Errorw(msg, kv...) }

func (l *sdkLogger) With(kv ...any) sdklog.Logger { return &sdkLogger{l.s.With(kv...)} }
