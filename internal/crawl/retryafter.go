package crawl

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxDelay is what a Retry-After saturates at: longer than any policy waits.
const MaxDelay = 100 * 365 * 24 * time.Hour

// Notes of ParseRetryAfter on what it made of a header.
const (
	RetryAfterAbsent     = ""
	RetryAfterSeconds    = "seconds"
	RetryAfterFractional = "fractional" // not in the grammar; rounded up
	RetryAfterDate       = "date"
	RetryAfterPast       = "past"    // a date in the past, or 0: own backoff
	RetryAfterInvalid    = "invalid" // own backoff
)

// ParseRetryAfter reads the values of a response's Retry-After headers (RFC 9110
// §10.2.3: delta-seconds or an HTTP-date in one of its three forms) and returns
// how long to wait from now. Dates are measured against date, the response's own
// Date header, so that a skewed clock on either side does no harm, and against
// now where that is absent or unreadable.
//
// Of several headers the largest valid one counts. It returns 0 and a note where
// there is none, or none that is valid and in the future: the caller then uses
// its own backoff, never 0.
func ParseRetryAfter(values []string, date string, now time.Time) (time.Duration, string) {
	var longest time.Duration
	note := RetryAfterAbsent
	for _, v := range values {
		d, n := parseRetryAfter(strings.TrimSpace(v), date, now)
		if d > longest || note == RetryAfterAbsent || (longest == 0 && note == RetryAfterInvalid) {
			longest, note = d, n
		}
	}
	return longest, note
}

func parseRetryAfter(v, date string, now time.Time) (time.Duration, string) {
	switch whole, fraction, dotted := strings.Cut(v, "."); {
	case isDigits(whole) && !dotted:
		return pastIfZero(seconds(whole), RetryAfterSeconds)
	case isDigits(whole) && isDigits(fraction):
		d := seconds(whole)
		if strings.Trim(fraction, "0") != "" && d < MaxDelay {
			d += time.Second
		}
		return pastIfZero(d, RetryAfterFractional)
	}
	at, ok := parseHTTPDate(v, now)
	if !ok {
		return 0, RetryAfterInvalid
	}
	from := now
	if sent, ok := parseHTTPDate(strings.TrimSpace(date), now); ok {
		from = sent
	}
	d := at.Sub(from)
	if d <= 0 {
		return 0, RetryAfterPast
	}
	return min(d, MaxDelay), RetryAfterDate
}

func pastIfZero(d time.Duration, note string) (time.Duration, string) {
	if d == 0 {
		return 0, RetryAfterPast
	}
	return d, note
}

// seconds reads digits, saturating before it multiplies.
func seconds(digits string) time.Duration {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > int64(MaxDelay/time.Second) {
		return MaxDelay
	}
	return time.Duration(n) * time.Second
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// parseHTTPDate reads IMF-fixdate, RFC 850 and asctime dates (RFC 9110 §5.6.7).
// A two-digit year that seems more than 50 years ahead is of the century before.
func parseHTTPDate(s string, now time.Time) (time.Time, bool) {
	t, err := http.ParseTime(s)
	if err != nil {
		return time.Time{}, false
	}
	if _, err := time.Parse(http.TimeFormat, s); err == nil || !strings.Contains(s, "-") {
		return t, true
	}
	// RFC 850: place the two digits into the hundred years that end 50 years from now.
	year := t.Year()%100 + now.Year()/100*100
	for year > now.Year()+50 {
		year -= 100
	}
	for year <= now.Year()-50 {
		year += 100
	}
	placed := time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	if placed.After(now.AddDate(50, 0, 0)) {
		placed = placed.AddDate(-100, 0, 0)
	}
	return placed, true
}

// CeilSeconds returns d in whole seconds, rounded up, for a summary.
func CeilSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
