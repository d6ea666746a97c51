// Package version names this build.
package version

// Version is set at link time: -ldflags "-X holdfast/internal/version.Version=1.2.3".
var Version = "0.1.0-dev"
