package host

// Served returns, for each queue that a host serves, the activities registered there.
func Served(fetchQueue string) map[string][]string {
	out := map[string][]string{}
	for _, s := range services(fetchQueue) {
		out[s.queue] = s.activities
	}
	return out
}
