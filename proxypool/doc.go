// Package proxypool leases proxies and hosts' turns over all workers of a
// deployment. Its state is in Redis; each step is one Lua script, so that the
// question and the booking cannot come apart.
//
// # Leases
//
// Acquire takes a lease id that the caller knew before anything ran and a holder
// token that each execution draws once. The same holder gets the same grant
// again (its reply was lost); another one supersedes it with a higher fence,
// keeps the proxy, is charged the host's turn anew and may be told to wait for
// it. Renew, Commit and Hop need the current fence. A lease ends by Release, by
// the reaper at its deadline, or by an acquire with Settle; it leaves a tombstone
// with what was committed, and a tombstone never becomes a lease again.
//
// # Hosts
//
// A host has an interval, a concurrency and a not-before. A wait for its turn is
// a reservation of (host, claimant): coming back at that time takes it, coming
// more than TurnGrace late loses it. Closing the host again moves all turns and
// keeps their order and spacing. Intervals are kept between grants, not turns:
// who comes late for a turn, and finds another's grant too close, gets a place
// in a second line behind it. Want of a proxy charges the host nothing.
//
// # Proxies
//
// A few members of the smallest set that the selector names are drawn, and the
// one that has rested longest, weighted by its health, is leased; if none of the
// draw is free, up to 256 are looked through. Avoided proxies, and those that
// the host throttled (429) in the last 30 s, are second choice: taken when no
// other is free or expected within Patience. One in use is expected so if its
// last lease is younger than Patience.
//
// Failures in a row cool a proxy 30 s, 60 s, 120 s … 30 min; the tenth
// quarantines it. One that is back from cooling has one lease at a time until a
// success. Leases that were open when a cooling began do not deepen it. Wrong
// credentials quarantine at once. An unclear fault (proxy or target?) is counted
// and judged: from the third in a row on, over at least two hosts, it is a
// failure. Two blocks in a row of one (proxy, host) pair keep it apart for 10 min.
//
// # Keys
//
// Sixteen keys under one hash tag, whatever the number of proxies, hosts and
// leases; every script names all of them. Packed values are fields that end in
// '|'; new ones go to the end.
//
//	meta       hash  fence (last given), gate (grants closed until), proxy, turn, pair (counters)
//	leases     hash  lease id → fence, deadline, granted, abort, proxy, host, holder
//	tombs      hash  lease id → ended, fence, how
//	outcomes   hash  lease id → what was committed; goes with the tombstone
//	deadlines  list  "look lease": leases by deadline, roughly
//	tombq      list  "ended lease": tombstones by age
//	hosts      hash  host → first free turn, earliest grant, last grant, not-before, shift, open, reserved, line
//	hostq      list  "look host"
//	turns      hash  "host claimant" → turn less the host's shift, stamp, in line, times told busy
//	turnq      list  "look stamp host claimant"
//	proxies    hash  proxy id → state, use, times, health (scripts/lib_proxy.lua)
//	config     hash  proxy id → address and credentials, JSON
//	index      hash  numbered members of each tag, region and of all
//	pairs      hash  "proxy host" → until, kind, blocks in a row, stamp
//	pairq      list  "look stamp proxy host"
//	idents     hash  scheme|host|port|user ↔ proxy id
//
// The lists are queues of what must be looked at later. They are re-queued
// lazily, a bounded number a call: a renewal does not touch them. A tombstone
// whose outcome has 300 bytes takes some 700 bytes of Redis until it is trimmed.
//
// # Invariants
//
//  1. An id is a lease or a tombstone, never both, and never a lease again.
//  2. Fences only grow. A Redis whose counter is behind what a client has seen
//     has lost grants: it grants nothing for one TTL.
//  3. Slots are freed exactly once, with the lease; at most one health sample.
//  4. By grants, no host is over its concurrency, under its interval or asked
//     before its not-before; no proxy over its concurrency or under its reuse.
//  5. Every script can run again after its reply was lost.
//  6. Time is Redis' own, in milliseconds. A holder's Deadline is monotonic and
//     starts before its call was sent.
//  7. Credentials are in config and idents, in a Grant's Proxy and in an Entry,
//     all of which print without them.
package proxypool
