// Package arch holds the repository's shape: which part may import which, what
// the two cluster programs must not link, and which package names say nothing.
// It is used by its own tests only.
package arch
