package fetch

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
	whatwg "github.com/nlnwa/whatwg-url/url"

	"holdfast/internal/crawl"
)

// guard keeps exchanges away from addresses that are not the public Internet's:
// a page must not be able to send us to the machine we run on, its neighbours or
// a cloud's metadata service.
//
// A direct dial is checked on the address it resolved to, so that no name gets
// round it. Through a proxy that resolves names only what is written in the URL
// can be checked: a public name that points at a private address is then the
// proxy's to refuse.
type guard struct {
	public  *ssrf.Guardian
	private *ssrf.Guardian
	never   []netip.Prefix
}

func newGuard() *guard {
	return &guard{
		public: ssrf.New(ssrf.WithAnyNetwork(), ssrf.WithAnyPort()),
		private: ssrf.New(ssrf.WithAnyNetwork(), ssrf.WithAnyPort(),
			ssrf.WithAllowedV4Prefixes(
				netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"),
				netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
				netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15")),
			ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7"))),
		// Metadata services of clouds, which lie in ranges that are otherwise
		// public or private.
		never: []netip.Prefix{
			netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("100.100.100.200/32"),
			netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::/32"),
		},
	}
}

// check refuses u by its scheme or host and writes the host into u in its WHATWG
// form, the one that is dialled and sent: "0x7f.1" becomes "127.0.0.1".
// allowPrivate admits loopback and private hosts, never metadata services,
// link-local or other special ones.
func (g *guard) check(u *url.URL, allowPrivate bool) *fault {
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "http" && u.Scheme != "https" {
		return permanent(crawl.ReasonSchemeNotAllowed)
	}
	host, ok := canonicalHost(u.Scheme, u.Host)
	if !ok || u.Opaque != "" {
		return permanent(crawl.ReasonInvalidURL)
	}
	u.Host = host
	if !g.nameAllowed(u.Hostname(), allowPrivate) {
		return permanent(crawl.ReasonAddressNotAllowed)
	}
	return nil
}

// canonicalHost returns host (with its port, if any) as the WHATWG URL standard
// serialises it; false if that standard refuses it.
func canonicalHost(scheme, host string) (string, bool) {
	if host == "" || strings.ContainsAny(host, "/\\?#@ \t\r\n") {
		return "", false
	}
	p, err := whatwg.Parse(scheme + "://" + host + "/")
	if err != nil || p.Hostname() == "" || p.Pathname() != "/" || p.Username() != "" {
		return "", false
	}
	return p.Host(), true
}

// nameAllowed judges a canonical host name or literal address without resolving it.
func (g *guard) nameAllowed(name string, allowPrivate bool) bool {
	if addr, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return g.addrAllowed(addr, allowPrivate)
	}
	name = strings.TrimRight(strings.ToLower(name), ".")
	if name == "" || name == "metadata" || name == "metadata.google.internal" || name == "instance-data" {
		return false
	}
	return allowPrivate || !privateName(name)
}

// privateName reports names that only mean something inside a network: RFC 6761,
// RFC 6762, RFC 8375 and ICANN's reservation of .internal.
func privateName(name string) bool {
	for _, tld := range []string{"localhost", "internal", "local", "localdomain", "home.arpa"} {
		if name == tld || strings.HasSuffix(name, "."+tld) {
			return true
		}
	}
	return name == "ip6-localhost" || name == "ip6-loopback"
}

func (g *guard) addrAllowed(addr netip.Addr, allowPrivate bool) bool {
	addr = addr.Unmap().WithZone("")
	for _, p := range g.never {
		if p.Contains(addr) {
			return false
		}
	}
	if allowPrivate {
		return g.private.SafeAddr(addr) == nil
	}
	return g.public.SafeAddr(addr) == nil
}

// control is a net.Dialer's ControlContext: it sees the resolved address of each
// connection just before it is made.
func (g *guard) control(allowPrivate bool) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil || !g.addrAllowed(ap.Addr(), allowPrivate) {
			return permanent(crawl.ReasonAddressNotAllowed)
		}
		return nil
	}
}
