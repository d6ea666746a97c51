package crawl

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// Proxy is one way out, with its credentials: it lives in the pool's Redis and
// in a transport, nowhere else. It prints as its id.
type Proxy struct {
	// ID is stable and says nothing about the address: "p17" or the importer's own.
	ID string
	// Scheme is http, https, socks5 (names resolved here) or socks5h (by the proxy).
	Scheme   string
	Host     string
	Port     int
	Username string
	Password string
	Region   string
	Tags     []string
}

// Addr returns host:port to dial, IPv6 in brackets.
func (p Proxy) Addr() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port)) }

// URL returns the proxy's URL with its credentials, for a transport only.
func (p Proxy) URL() *url.URL {
	u := &url.URL{Scheme: p.Scheme, Host: p.Addr()}
	if p.Username != "" || p.Password != "" {
		u.User = url.UserPassword(p.Username, p.Password)
	}
	return u
}

// String returns the id: a proxy that ends up in a log shows no credential.
func (p Proxy) String() string { return p.ID }

// GoString returns the id, for %#v.
func (p Proxy) GoString() string { return p.ID }

// Format makes every verb print the id.
func (p Proxy) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(p.ID)) }

// MarshalJSON refuses to encode a proxy: the pool has a codec of its own.
func (p Proxy) MarshalJSON() ([]byte, error) {
	return []byte(strconv.Quote(p.ID)), nil
}
