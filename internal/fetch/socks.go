package fetch

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"

	"holdfast/internal/crawl"
)

// A SOCKS5 client of our own (RFC 1928, RFC 1929): net/http's and x/net's report
// a refusal as text only, and who is to blame depends on its code.

const (
	socksVersion  = 5
	socksNoAuth   = 0
	socksPassword = 2
	socksRefused  = 0xff
)

var errSocks = errors.New("fetch: not a SOCKS5 answer")

// socksConnect asks the proxy on conn for a connection to host:port; host is a
// name (the proxy resolves it) or an address. The caller sets conn's deadline.
func socksConnect(conn net.Conn, p *crawl.Proxy, host, port string) error {
	if err := socksGreet(conn, p); err != nil {
		return socksFault(err)
	}
	req, err := socksRequest(host, port)
	if err != nil {
		return err
	}
	if _, err := conn.Write(req); err != nil {
		return socksFault(err)
	}
	return socksFault(socksReply(conn))
}

func socksGreet(conn net.Conn, p *crawl.Proxy) error {
	methods := []byte{socksVersion, 1, socksNoAuth}
	credentials := p.Username != "" || p.Password != ""
	if credentials {
		methods = []byte{socksVersion, 2, socksNoAuth, socksPassword}
	}
	if _, err := conn.Write(methods); err != nil {
		return err
	}
	var answer [2]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	switch {
	case answer[0] != socksVersion:
		return errSocks
	case answer[1] == socksNoAuth:
		return nil
	case answer[1] == socksPassword && credentials:
		return socksLogin(conn, p)
	case answer[1] == socksRefused:
		return &fault{crawl.ProxyAuth, crawl.ReasonProxyAuth}
	}
	return errSocks
}

func socksLogin(conn net.Conn, p *crawl.Proxy) error {
	if len(p.Username) > 255 || len(p.Password) > 255 {
		return &fault{crawl.ProxyAuth, crawl.ReasonProxyAuth}
	}
	msg := append([]byte{1, byte(len(p.Username))}, p.Username...)
	msg = append(append(msg, byte(len(p.Password))), p.Password...)
	if _, err := conn.Write(msg); err != nil {
		return err
	}
	var answer [2]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if answer[1] != 0 {
		return &fault{crawl.ProxyAuth, crawl.ReasonProxyAuth}
	}
	return nil
}

func socksRequest(host, port string) ([]byte, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, permanent(crawl.ReasonInvalidURL)
	}
	req := []byte{socksVersion, 1, 0}
	switch addr, err := netip.ParseAddr(host); {
	case err == nil && addr.Unmap().Is4():
		req = append(append(req, 1), addr.Unmap().AsSlice()...)
	case err == nil:
		req = append(append(req, 4), addr.AsSlice()...)
	case len(host) > 255:
		return nil, permanent(crawl.ReasonInvalidURL)
	default:
		req = append(append(req, 3, byte(len(host))), host...)
	}
	return binary.BigEndian.AppendUint16(req, uint16(n)), nil
}

func socksReply(conn net.Conn) error {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if head[0] != socksVersion {
		return errSocks
	}
	// Codes 3 to 6 are the proxy's word about the target: it works, and nobody
	// else can say whether it is right. The others are about itself.
	switch head[1] {
	case 0:
	case 3, 4, 6:
		return ambiguous(crawl.ReasonConnectTimeout)
	case 5:
		return ambiguous(crawl.ReasonConnectRefused)
	case 1:
		return &fault{crawl.ProxyFault, crawl.ReasonProxyStatus}
	default:
		return errSocks
	}
	var skip int
	switch head[3] {
	case 1:
		skip = net.IPv4len
	case 4:
		skip = net.IPv6len
	case 3:
		var n [1]byte
		if _, err := io.ReadFull(conn, n[:]); err != nil {
			return err
		}
		skip = int(n[0])
	default:
		return errSocks
	}
	_, err := io.CopyN(io.Discard, conn, int64(skip)+2)
	return err
}

// socksFault blames the proxy for what is not classed yet: no tunnel stands.
func socksFault(err error) error {
	var f *fault
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.Is(err, errSocks):
		return &fault{crawl.ProxyFault, crawl.ReasonProxyProtocol}
	}
	return &fault{crawl.ProxyFault, dialReason(err)}
}
