package crawl_test

import (
	"testing"
	"time"

	"holdfast/internal/crawl"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []string
		date   string
		want   time.Duration
		note   string
	}{
		"no header":                           {nil, "", 0, crawl.RetryAfterAbsent},
		"seconds":                             {[]string{"120"}, "", 2 * time.Minute, crawl.RetryAfterSeconds},
		"seconds in white space":              {[]string{"  7\t"}, "", 7 * time.Second, crawl.RetryAfterSeconds},
		"six hours are kept":                  {[]string{"21600"}, "", 6 * time.Hour, crawl.RetryAfterSeconds},
		"zero is our own backoff":             {[]string{"0"}, "", 0, crawl.RetryAfterPast},
		"fractional is rounded up":            {[]string{"1.2"}, "", 2 * time.Second, crawl.RetryAfterFractional},
		"a whole fraction is not":             {[]string{"1.000"}, "", time.Second, crawl.RetryAfterFractional},
		"a sign is invalid":                   {[]string{"+1"}, "", 0, crawl.RetryAfterInvalid},
		"negative is invalid":                 {[]string{"-1"}, "", 0, crawl.RetryAfterInvalid},
		"empty is invalid":                    {[]string{""}, "", 0, crawl.RetryAfterInvalid},
		"garbage is invalid":                  {[]string{"soon"}, "", 0, crawl.RetryAfterInvalid},
		"a lone point is invalid":             {[]string{"."}, "", 0, crawl.RetryAfterInvalid},
		"more digits than fit saturate":       {[]string{"99999999999999999999999"}, "", crawl.MaxDelay, crawl.RetryAfterSeconds},
		"more seconds than a Duration":        {[]string{"9223372036854775807"}, "", crawl.MaxDelay, crawl.RetryAfterSeconds},
		"a fraction of the saturated":         {[]string{"99999999999999999999.5"}, "", crawl.MaxDelay, crawl.RetryAfterFractional},
		"IMF-fixdate against now":             {[]string{"Tue, 01 Dec 2026 12:00:30 GMT"}, "", 30 * time.Second, crawl.RetryAfterDate},
		"IMF-fixdate against the Date header": {[]string{"Tue, 01 Dec 2026 18:00:30 GMT"}, "Tue, 01 Dec 2026 18:00:00 GMT", 30 * time.Second, crawl.RetryAfterDate},
		"an unreadable Date header is unused": {[]string{"Tue, 01 Dec 2026 12:00:30 GMT"}, "yesterday", 30 * time.Second, crawl.RetryAfterDate},
		"RFC 850":                             {[]string{"Tuesday, 01-Dec-26 12:01:00 GMT"}, "", time.Minute, crawl.RetryAfterDate},
		"RFC 850 of the last century is past": {[]string{"Sunday, 06-Nov-94 08:49:37 GMT"}, "", 0, crawl.RetryAfterPast},
		"asctime":                             {[]string{"Tue Dec  1 12:02:00 2026"}, "", 2 * time.Minute, crawl.RetryAfterDate},
		"a date in the past":                  {[]string{"Tue, 01 Dec 2026 11:59:59 GMT"}, "", 0, crawl.RetryAfterPast},
		"year 2098 is kept":                   {[]string{"Mon, 01 Dec 2098 12:00:00 GMT"}, "", time.Date(2098, 12, 1, 12, 0, 0, 0, time.UTC).Sub(now), crawl.RetryAfterDate},
		"year 9999 saturates":                 {[]string{"Fri, 31 Dec 9999 23:59:59 GMT"}, "", crawl.MaxDelay, crawl.RetryAfterDate},
		"the largest of several":              {[]string{"3", "9", "5"}, "", 9 * time.Second, crawl.RetryAfterSeconds},
		"a valid one beside an invalid one":   {[]string{"x", "4"}, "", 4 * time.Second, crawl.RetryAfterSeconds},
		"an invalid one beside a valid one":   {[]string{"4", "x"}, "", 4 * time.Second, crawl.RetryAfterSeconds},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, note := crawl.ParseRetryAfter(c.values, c.date, now)
			if got != c.want || note != c.note {
				t.Errorf("ParseRetryAfter(%q, %q) = %v, %q; want %v, %q", c.values, c.date, got, note, c.want, c.note)
			}
		})
	}
}

// TestRFC850Century holds the 50-year rule of RFC 9110 §5.6.7 at its edge.
func TestRFC850Century(t *testing.T) {
	t.Parallel()
	in := func(year string) time.Duration {
		d, _ := crawl.ParseRetryAfter([]string{"Tuesday, 01-Jan-" + year + " 00:00:00 GMT"}, "", now)
		return d
	}
	if d := in("76"); d <= 49*365*24*time.Hour {
		t.Errorf("year 76 is %v ahead; want 2076, 49 years and a month", d)
	}
	if d := in("77"); d != 0 {
		t.Errorf("year 77 is %v ahead; want 1977, in the past", d)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "0", "-1", "+1", "1.5", "", "Tue, 01 Dec 2026 12:00:30 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "99999999999999999999"} {
		f.Add(s, "Tue, 01 Dec 2026 12:00:00 GMT")
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		d, note := crawl.ParseRetryAfter([]string{value}, date, now)
		if d < 0 || d > crawl.MaxDelay {
			t.Errorf("%q gives %v, outside 0 … %v", value, d, crawl.MaxDelay)
		}
		if valid := note == crawl.RetryAfterSeconds || note == crawl.RetryAfterFractional || note == crawl.RetryAfterDate; valid != (d > 0) {
			t.Errorf("%q gives %v with note %q", value, d, note)
		}
	})
}
