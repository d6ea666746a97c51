// Package journal is a Redis that lives in this process and survives its death:
// miniredis behind a front of its own that journals what each command changed.
//
// # What holds
//
//   - Commands run one at a time, each at one instant: TIME, expiry and the
//     journal agree on it.
//   - What a command, a script or an EXEC changed is one checksummed record. It
//     is handed to the operating system before the reply is sent, to anyone: a
//     killed process loses nothing that a client has seen. It is fsynced each
//     second: a power cut loses at most that second.
//   - A record is replayed whole or not at all. A tail torn by the crash is cut.
//   - Scripts are journaled as the write commands they ran, so a replay does not
//     run Lua; SPOP is journaled as the SREM it came to. Relative deadlines are
//     replayed at the instant they were given and so come out where they were.
//   - Time never runs backwards, restarts and clock steps included.
//
// # What is not there
//
// One database (0). No streams, HyperLogLogs, pub/sub, WATCH, blocking commands,
// set operations that store (miniredis keeps an empty result as a key): they are
// refused with an error that says so. While a key has a deadline, TIME moves in
// steps of 5 ms, each of which costs a walk over the keys: few large ones suit it
// better than many small ones.
// Scripts do not survive a restart: EVALSHA then answers NOSCRIPT, as a
// restarted Redis does.
//
// # On disk
//
// The directory holds "snapshot", the state as of the start of a segment, and
// "journal-NNNN", the segments from there on. Every 50,000 records the state is
// written as a new snapshot and the segments before it are dropped.
package journal
