package fetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/fetch"
)

func TestTheRateIsWatchedOverReadingTimeAlone(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Second
	cases := []struct {
		name string
		run  func(r *fetch.Rate)
		slow bool
	}{
		{"steady, enough", func(r *fetch.Rate) {
			for range 100 {
				r.Read(time.Second, 12)
			}
		}, false},
		{"steady, too little", func(r *fetch.Rate) {
			for range 30 {
				r.Read(time.Second, 9)
			}
		}, true},
		{"a burst, then silence within the window", func(r *fetch.Rate) {
			r.Read(time.Second, 1000)
			r.Read(8*time.Second, 1)
		}, false},
		{"a burst, then silence for longer", func(r *fetch.Rate) {
			r.Read(time.Second, 1000)
			r.Read(25*time.Second, 1)
		}, true},
		{"silence from the start", func(r *fetch.Rate) { r.Read(time.Minute, 0) }, true},
		{"a slow store between fast reads", func(r *fetch.Rate) {
			for range 10 {
				r.Read(time.Millisecond, 1)
				time.Sleep(time.Minute)
			}
		}, false},
	}
	for _, tc := range cases {
		synctest.Test(t, func(t *testing.T) {
			slow := false
			r := fetch.NewRate(window, 100, func() { slow = true })
			tc.run(r)
			r.Stop()
			synctest.Wait()
			if slow != tc.slow {
				t.Errorf("%s: slow %v", tc.name, slow)
			}
		})
	}
}
