package fetch

import (
	"net/http"

	"holdfast/internal/crawl"
)

// classify returns what a final status says (design: "What is retried"). viaProxy
// is true where the proxy itself could have answered: plain http through an http
// or https proxy.
func classify(status int, viaProxy bool) (crawl.Class, crawl.Reason) {
	switch {
	case status >= 200 && status <= 299, status == http.StatusNotModified:
		return crawl.OK, ""
	case status == http.StatusProxyAuthRequired && viaProxy:
		return crawl.ProxyAuth, crawl.ReasonProxyAuth
	case status == http.StatusForbidden:
		return crawl.Blocked, crawl.ReasonBlocked
	case transient(status):
		return crawl.TargetTransient, crawl.HTTPReason(status)
	}
	return crawl.TargetPermanent, crawl.HTTPReason(status)
}

func transient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		520, 521, 522, 523, 524: // a CDN whose origin fails
		return true
	}
	return false
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}
