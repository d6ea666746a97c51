// Package e2e holds tests that run Holdfast as its users do: the built programs
// as processes, on loopback sites and proxies, with kills. It links no server
// itself; the services are a `standalone up --no-worker` of their own.
package e2e
