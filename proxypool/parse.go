package proxypool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"holdfast/internal/crawl"
)

// schemes are the ways a proxy is spoken to.
var schemes = []string{"http", "https", "socks5", "socks5h"}

// What can be wrong with a line. None of these shows any part of it.
var (
	errScheme   = errors.New("the scheme must be http, https, socks5 or socks5h")
	errHost     = errors.New("the host is not a name or an address (IPv6 needs brackets)")
	errPort     = errors.New("the port must be a number from 1 to 65535")
	errForm     = errors.New("want host:port, user:pass@host:port, scheme://user:pass@host:port or host:port:user:pass")
	errEncoding = errors.New("bad percent-encoding in the user name or password ('%' itself is %25)")
	errControl  = errors.New("control character in the user name or password")
	errColon    = errors.New("a user name cannot hold ':'")
	errLong     = errors.New("user name or password longer than 255 bytes")
	errPath     = errors.New("a proxy has no path or query")
	errUser     = errors.New("a password without a user name")
)

// Problem is a bad line of a list.
type Problem struct {
	Line int
	Err  error
}

// ListError names every bad line of a list, by number: a line may hold a
// password, so none is quoted.
type ListError struct {
	Name     string
	Problems []Problem
}

// Error has one line a problem, "proxies.txt:3: …", twenty at most.
func (e *ListError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == 20 {
			fmt.Fprintf(&b, "\n%s: and %d more", e.Name, len(e.Problems)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d: %v", e.Name, p.Line, p.Err)
	}
	return b.String()
}

// maxLine is the longest line of a list, in bytes.
const maxLine = 4096

func (o ImportOptions) scheme() string {
	if o.Scheme == "" {
		return "http"
	}
	return o.Scheme
}

// ParseList reads a list of proxies, one a line:
//
//	host:port
//	user:pass@host:port              percent-encoded: %40 is '@'
//	scheme://user:pass@host:port     percent-encoded
//	host:port:user:pass              as it is; the password may hold ':'
//
// Empty lines, '#' comments, a byte order mark and CRLF are passed over. All or
// nothing: any bad line makes a *ListError that names them all, with name as the
// file's name and without a word of what they say.
func ParseList(r io.Reader, name string, opts ImportOptions) ([]Entry, error) {
	var entries []Entry
	var problems []Problem
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, maxLine), maxLine)
	n := 0
	for sc.Scan() {
		n++
		line := sc.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		line = stripComment(line)
		if line == "" {
			continue
		}
		p, err := parseProxy(line, opts.scheme())
		if err != nil {
			problems = append(problems, Problem{Line: n, Err: err})
			continue
		}
		entries = append(entries, Entry{Proxy: p, Line: n})
	}
	if err := sc.Err(); err != nil {
		if !errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		problems = append(problems, Problem{Line: n + 1, Err: fmt.Errorf("longer than %d bytes", maxLine)})
	}
	if len(problems) > 0 {
		return nil, &ListError{Name: name, Problems: problems}
	}
	return entries, nil
}

// stripComment cuts a comment, which begins the line or follows a blank.
func stripComment(line string) string {
	line = strings.TrimSpace(line)
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return strings.TrimSpace(line[:i])
		}
	}
	return line
}

// ParseProxy reads one proxy in any of ParseList's forms.
func ParseProxy(line string) (crawl.Proxy, error) {
	return parseProxy(strings.TrimSpace(line), "http")
}

func parseProxy(line, scheme string) (crawl.Proxy, error) {
	p := crawl.Proxy{Scheme: strings.ToLower(scheme)}
	if strings.ContainsAny(line, " \t\r\n\v\f\x00") {
		return crawl.Proxy{}, errForm
	}
	before, after, hasScheme := strings.Cut(line, "://")
	if hasScheme {
		p.Scheme, line = strings.ToLower(before), strings.TrimSuffix(after, "/")
	}
	if !slices.Contains(schemes, p.Scheme) {
		return crawl.Proxy{}, errScheme
	}
	var err error
	if at := strings.LastIndexByte(line, '@'); at >= 0 {
		if p.Username, p.Password, err = parseUserinfo(line[:at]); err != nil {
			return crawl.Proxy{}, err
		}
		line = line[at+1:]
	} else if line, p.Username, p.Password, err = cutTrailing(line); err != nil {
		return crawl.Proxy{}, err
	}
	if hasScheme && strings.ContainsAny(line, "/?#") {
		return crawl.Proxy{}, errPath
	}
	if p.Host, p.Port, err = parseAddr(line); err != nil {
		return crawl.Proxy{}, err
	}
	return p, checkCredentials(p)
}

// cutTrailing takes user and password off host:port:user:pass.
func cutTrailing(line string) (addr, user, pass string, err error) {
	head := ""
	if strings.HasPrefix(line, "[") {
		end := strings.IndexByte(line, ']')
		if end < 0 {
			return "", "", "", errHost
		}
		head, line = line[:end+1], line[end+1:]
	}
	if head == "" && bareIPv6(line) {
		return "", "", "", errHost
	}
	parts := strings.SplitN(line, ":", 4)
	switch len(parts) {
	case 2:
		return head + line, "", "", nil
	case 4:
		if parts[2] == "" {
			return "", "", "", errUser
		}
		return head + parts[0] + ":" + parts[1], parts[2], parts[3], nil
	}
	return "", "", "", errForm
}

// bareIPv6 reports an IPv6 address without brackets, with or without a port:
// it would read as host:port:user:pass.
func bareIPv6(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return strings.Contains(s, ":")
	}
	addr, err := netip.ParseAddr(s[:max(strings.LastIndexByte(s, ':'), 0)])
	return err == nil && addr.Is6()
}

func parseUserinfo(s string) (user, pass string, err error) {
	rawUser, rawPass, _ := strings.Cut(s, ":")
	if user, err = url.PathUnescape(rawUser); err != nil {
		return "", "", errEncoding
	}
	if pass, err = url.PathUnescape(rawPass); err != nil {
		return "", "", errEncoding
	}
	if user == "" && pass == "" {
		return "", "", errForm
	}
	return user, pass, nil
}

func parseAddr(s string) (string, int, error) {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 {
		return "", 0, errForm
	}
	host, digits := s[:colon], s[colon+1:]
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return "", 0, errPort
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		addr, err := netip.ParseAddr(host[1 : len(host)-1])
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", 0, errHost
		}
		return addr.String(), int(port), nil
	}
	host = strings.ToLower(host)
	if !isHostname(host) {
		return "", 0, errHost
	}
	return host, int(port), nil
}

func isHostname(s string) bool {
	if s == "" || len(s) > 253 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	if strings.Contains(s, "..") {
		return false
	}
	// What ends in a number is an IPv4 address or nothing.
	labels := strings.Split(strings.TrimSuffix(s, "."), ".")
	if _, err := strconv.ParseUint(labels[len(labels)-1], 10, 64); err == nil {
		_, err := netip.ParseAddr(s)
		return err == nil
	}
	return true
}

func checkCredentials(p crawl.Proxy) error {
	switch {
	case p.Username == "" && p.Password != "":
		return errUser
	case len(p.Username) > 255 || len(p.Password) > 255:
		return errLong
	case strings.ContainsRune(p.Username, ':'):
		return errColon
	}
	for _, s := range []string{p.Username, p.Password} {
		for i := range len(s) {
			if s[i] < 0x20 || s[i] == 0x7f {
				return errControl
			}
		}
	}
	return nil
}
