// Package embedded runs, in this process and on one data directory, the services
// that a deployment would run apart: a Temporal server on SQLite files, its Web
// UI, and a Redis (internal/journal). It alone imports go.temporal.io/server.
//
// All of it listens on loopback only. A directory belongs to one process at a
// time. Killed at any point, the next Start on the directory goes on where it was.
package embedded
