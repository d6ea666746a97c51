package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"holdfast/internal/crawl"
)

// fault is an error that already knows its class and reason. Its text is made of
// those alone.
type fault struct {
	class  crawl.Class
	reason crawl.Reason
}

func (f *fault) Error() string { return "fetch: " + string(f.class) + ": " + string(f.reason) }

func permanent(r crawl.Reason) *fault { return &fault{crawl.Permanent, r} }
func ambiguous(r crawl.Reason) *fault { return &fault{crawl.Ambiguous, r} }
func tooLarge() *fault                { return &fault{crawl.TooLarge, crawl.ReasonTooLarge} }

// What ends an exchange's context, told apart by its cause.
var (
	errTotal   = errors.New("fetch: out of time")
	errTooSlow = errors.New("fetch: too slow")
	errClosed  = errors.New("fetch: exchange is over")
)

// hookError is what one of the caller's hooks answered.
type hookError struct{ err error }

func (h *hookError) Error() string { return "fetch: ended by its caller" }
func (h *hookError) Unwrap() error { return h.err }

// storeError is what the body's store answered.
type storeError struct{ err error }

func (s *storeError) Error() string { return "fetch: body store: " + s.err.Error() }
func (s *storeError) Unwrap() error { return s.err }

// dialReason says how a connection that never stood failed. A host or network
// that cannot be reached counts as refused.
func dialReason(err error) crawl.Reason {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return crawl.ReasonDNS
	case isTimeout(err):
		return crawl.ReasonConnectTimeout
	case isTLS(err):
		return crawl.ReasonTLS
	case isReset(err):
		return crawl.ReasonConnectReset
	}
	return crawl.ReasonConnectRefused
}

// linkReason says how a connection that stood broke before an answer came.
func linkReason(err error) crawl.Reason {
	switch {
	case isTimeout(err):
		return crawl.ReasonTimeout
	case isTLS(err):
		return crawl.ReasonTLS
	case isReset(err), serverGone(err):
		return crawl.ReasonReset
	}
	return crawl.ReasonProtocol
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &n) && n.Timeout()
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// serverGone and headerTooLong read texts of net/http that have no type: a test
// of each fails when a Go release changes them.
func serverGone(err error) bool {
	return strings.Contains(err.Error(), "server closed idle connection")
}

func headerTooLong(err error) bool {
	return strings.Contains(err.Error(), "response headers exceeded")
}

func isTLS(err error) bool {
	var (
		verify *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
		ech    *tls.ECHRejectionError
		ca     x509.UnknownAuthorityError
		name   x509.HostnameError
		bad    x509.CertificateInvalidError
		remote *net.OpError
	)
	if errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &ech) ||
		errors.As(err, &ca) || errors.As(err, &name) || errors.As(err, &bad) {
		return true
	}
	// crypto/tls reports a peer's alert as an OpError of its own making.
	return errors.As(err, &remote) && (remote.Op == "remote error" || remote.Op == "local error") ||
		strings.HasPrefix(err.Error(), "tls: ")
}
