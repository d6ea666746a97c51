// Package crawl holds the value types that every part of Holdfast speaks, and
// the pure rules over them: what is retried and after how long.
//
// Nothing here does IO, reads a clock or draws from a global generator, so that
// workflow code may call all of it: the same inputs give the same answer in a
// replay years later.
package crawl
