package lab

import (
	"bufio"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"strconv"
)

// SOCKS5 as far as CONNECT goes: RFC 1928, with the passwords of RFC 1929.
const (
	socksVersion     = 5
	socksNoAuth      = 0
	socksPassword    = 2
	socksNoMethod    = 0xff
	socksConnect     = 1
	socksIPv4        = 1
	socksName        = 3
	socksIPv6        = 4
	socksOK          = 0
	socksFailure     = 1
	socksNotAllowed  = 2
	socksRefused     = 5
	socksNoCommand   = 7
	socksNoAddrType  = 8
	passwordVersion  = 1
	passwordAccepted = 0
	passwordDenied   = 1
)

func (p *Proxy) serveSOCKS(c net.Conn) {
	br := bufio.NewReader(c)
	if p.opts.Behaviour == Stall {
		defer p.enter(&p.stats.Connects)()
		_, _ = io.Copy(io.Discard, br)
		return
	}
	if p.opts.Behaviour == Slow {
		p.pause(p.opts.Delay)
	}
	if !p.greet(c, br) {
		return
	}
	target, code := readTarget(br)
	defer p.enter(&p.stats.Connects)()
	if code == socksOK && p.opts.Behaviour == Unavailable {
		code = socksFailure
	}
	if code != socksOK {
		socksReply(c, code)
		return
	}
	up, err := p.dial(p.ctx, "tcp", target)
	switch {
	case errors.Is(err, ErrNotLoopback):
		socksReply(c, socksNotAllowed)
	case err != nil:
		socksReply(c, socksRefused)
	case socksReply(c, socksOK) != nil:
		_ = up.Close()
	default:
		p.join(c, br, up)
	}
}

// greet agrees on a method and checks the password (RFC 1928 §3, RFC 1929 §2).
func (p *Proxy) greet(c net.Conn, br *bufio.Reader) bool {
	version, err := br.ReadByte()
	if err != nil || version != socksVersion {
		return false
	}
	methods, err := readShort(br)
	if err != nil {
		return false
	}
	want := byte(socksNoAuth)
	if p.guarded() {
		want = socksPassword
	}
	offered := false
	for _, m := range methods {
		offered = offered || m == want
	}
	if !offered {
		p.denied()
		_, _ = c.Write([]byte{socksVersion, socksNoMethod})
		return false
	}
	if _, err := c.Write([]byte{socksVersion, want}); err != nil {
		return false
	}
	if want == socksNoAuth {
		return true
	}
	if version, err = br.ReadByte(); err != nil || version != passwordVersion {
		return false
	}
	user, err := readShort(br)
	if err != nil {
		return false
	}
	password, err := readShort(br)
	if err != nil {
		return false
	}
	same := subtle.ConstantTimeCompare(user, []byte(p.opts.Username)) & subtle.ConstantTimeCompare(password, []byte(p.opts.Password))
	if same != 1 {
		p.denied()
		_, _ = c.Write([]byte{passwordVersion, passwordDenied})
		return false
	}
	_, err = c.Write([]byte{passwordVersion, passwordAccepted})
	return err == nil
}

// readShort reads a length byte and so many bytes.
func readShort(br *bufio.Reader) ([]byte, error) {
	n, err := br.ReadByte()
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(br, b)
	return b, err
}

// readTarget reads a request (RFC 1928 §4) and returns host:port, or why not.
func readTarget(br *bufio.Reader) (string, byte) {
	var head [4]byte
	if _, err := io.ReadFull(br, head[:]); err != nil || head[0] != socksVersion {
		return "", socksFailure
	}
	if head[1] != socksConnect {
		return "", socksNoCommand
	}
	var host string
	switch head[3] {
	case socksIPv4, socksIPv6:
		ip := make(net.IP, net.IPv4len)
		if head[3] == socksIPv6 {
			ip = make(net.IP, net.IPv6len)
		}
		if _, err := io.ReadFull(br, ip); err != nil {
			return "", socksFailure
		}
		host = ip.String()
	case socksName:
		name, err := readShort(br)
		if err != nil {
			return "", socksFailure
		}
		host = string(name)
	default:
		return "", socksNoAddrType
	}
	var port [2]byte
	if _, err := io.ReadFull(br, port[:]); err != nil {
		return "", socksFailure
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port[0])<<8|int(port[1]))), socksOK
}

// socksReply answers with an address of zeros: nobody asks for ours.
func socksReply(c net.Conn, code byte) error {
	_, err := c.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
