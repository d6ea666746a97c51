// Package lab is a small internet on loopback: a web site that misbehaves on
// request, and forward proxies of every kind of health. The demo, the tests and
// the benchmark crawl it, so that nobody else's site has to stand for it.
//
// Everything is deterministic: a page's bytes follow from its path, a fault from
// its path and how often it was asked. Servers listen on loopback only, proxies
// connect to loopback only, and each stops by its own Close, which breaks
// what is under way and waits for it.
package lab
