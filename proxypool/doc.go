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
// Tier by tier, the cheapest first, a few members of the smallest set that the
// selector names are drawn; of those that are free one is drawn by weight: its
// score squared, the free share of its concurrency, the time since its last grant
// (up to a minute), its speed (half at 2 s to the tunnel, a quarter at 4 s). If
// none of the draw is free, up to 256 are looked through. Avoided proxies, those
// that the host throttled (429) in the last 30 s and those that failed or were
// blocked there are second choice: taken when no other of any tier is free or
// expected within Patience. One in use is expected so if its last lease is younger
// than Patience. One acquire in eight prefers a proxy that must be decided upon.
//
// A session (Selector.Session) keeps its proxy, whatever is to be avoided. A
// proxy whose credentials hold {session} is a gateway: each session, or each lease
// without one, is another identity at the same address, so the avoid list does not
// concern it. No lease's deadline passes its proxy's end.
//
// # Health
//
// Each lease is one sample, in three windows: 10 min, 1 h, 24 h. The score is the
// share of successes of the newest window, drawn by few samples to that of the next
// longer one, and the longest to 0.75.
//
// Failures in a row cool a proxy 30 s, 60 s, 120 s … 30 min; the tenth
// quarantines it, and so does a day of which at most a quarter succeeded (of ten
// samples or more, and failing now). One that is back from cooling has one lease at
// a time until a success. Leases that were open when a cooling began do not deepen
// it. Restored by hand it begins anew. Refused credentials (407) quarantine at
// once, and suspect every proxy that has the same for a day: each has one lease at
// a time until one that was granted since succeeds.
//
// An unclear fault (proxy or target?) is judged by evidence. It is the host's, if
// the latest outcomes of two other proxies there, and at least half of up to eight,
// within ten minutes, were faults too. It is the proxy's, a failure, if its latest
// outcomes at the last two other hosts were faults too (at the last one, if it is
// on probation or had a bad day). Else it is nobody's, and only the pair is
// remembered. Two blocks in a row of one (proxy, host) pair keep it apart for
// 10 min, if other proxies pass there: a host that blocks all blocks none of them
// in particular. Of a gateway it takes six.
//
// # Keys
//
// Eighteen keys under one hash tag, whatever the number of proxies, hosts and
// leases; every script names all of them. Packed values are fields that end in
// '|'; new ones go to the end. The schema is hf2: hf1, of which there was no
// release, had other records of proxies and pairs and is not read.
//
//	meta       hash  fence (last given), gate (grants closed until), proxy, turn, recounts (counters),
//	                 suspects (when any credentials were refused), c|NAME (when those were)
//	leases     hash  lease id → fence, deadline, granted, abort, proxy, host, holder, again, until
//	tombs      hash  lease id → ended, fence, how
//	outcomes   hash  lease id → what was committed; goes with the tombstone
//	deadlines  list  "look lease": leases by deadline, roughly
//	tombq      list  "ended lease": tombstones by age
//	hosts      hash  host → first free turn, earliest grant, last grant, not-before, shift, open, reserved, line,
//	                 the latest outcome of each of the last eight proxies
//	hostq      list  "look host"
//	turns      hash  "host claimant" → turn less the host's shift, stamp, in line, times told busy
//	turnq      list  "look stamp host claimant"
//	proxies    hash  proxy id → state, use, times, health (scripts/lib_proxy.lua)
//	config     hash  proxy id → address and credentials, JSON
//	index      hash  numbered members of each tag, region and of all, by tier
//	pairs      hash  "proxy host" → until, kind, blocks in a row, successes, faults, last fault
//	pairq      list  "look proxy host"
//	idents     hash  scheme|host|port|user ↔ proxy id
//	sessions   hash  session → proxy, until
//	sessq      list  "look session"
//
// The lists are queues of what must be looked at later. They are re-queued
// lazily, a bounded number a call: a renewal does not touch them.
//
// Redis needs for a proxy with two tags some 1,150 bytes (930 before its first
// lease), for a (proxy, host) pair 140, for a host 310, for a tombstone 150 and
// its outcome. A pair has a record only from its first fault or block until an hour
// after its last, and there are at most 100,000.
//
// # Invariants
//
//  1. An id is a lease or a tombstone, never both, and never a lease again.
//  2. Fences only grow. A Redis whose counter is behind what a client has seen
//     has lost grants: it grants nothing for one TTL.
//  3. Slots are freed exactly once, with the lease; at most one health sample.
//     Reconcile finds what a lost write left behind, in counts and queues.
//  4. By grants, no host is over its concurrency, under its interval or asked
//     before its not-before; no proxy over its concurrency or under its reuse, nor
//     leased past its end.
//  5. Every script can run again after its reply was lost.
//  6. Time is Redis' own, in milliseconds. A holder's Deadline is monotonic and
//     starts before its call was sent.
//  7. Credentials are in config and idents, in a Grant's Proxy and in an Entry,
//     all of which print without them.
package proxypool
