// Package cli is the command line of Holdfast: the cobra tree that the starter
// runs against a cluster and that standalone reuses for its own embedded one.
//
// Nothing here reads the process's environment, its arguments or its standard
// streams: they come in an Env, so that tests run every command in-process. A
// command is one file with one constructor; there are no package variables
// that change and no init functions.
//
// Exit codes: 0 done; 1 the work failed; 2 wrong use or bad input; 3 a service
// cannot be reached; 130 interrupted, state kept.
package cli
