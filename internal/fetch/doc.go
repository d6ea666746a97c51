// Package fetch makes one HTTP exchange through one proxy, or directly where a
// campaign says so, and says what it came to in the words of internal/crawl.
//
// An exchange is a request and the redirects it leads to. It has a transport, a
// cookie jar and connections of its own: nothing of one proxy reaches another,
// and nothing of it outlives Do. HTTP/1.1 only, so that each limit is held by
// the connection that this package dialled.
//
// Who is to blame follows from how far the way to the target stood:
//
//   - before it stands (dialling the proxy, TLS to it, CONNECT, SOCKS), the proxy
//     is at fault; without a proxy the fault is ambiguous;
//   - once it stands, a timeout, a reset or a TLS failure is ambiguous;
//   - an answer is the target's. Plain http through an http proxy has no tunnel:
//     a 502, 503 or 504 there counts as the target's, since nothing in it tells
//     them apart; only 407 is the proxy's own.
//
// No error text of net/http, a server or a proxy leaves the package: those hold
// URLs, passwords and control characters. What went wrong is a word.
package fetch
