package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"

	"holdfast/internal/crawl"
)

// FailureDetails is what a failed URL's error carries beside its type.
type FailureDetails struct {
	Status   int    `json:"status,omitempty"`
	Attempts int    `json:"attempts"`
	Proxy    string `json:"proxy,omitempty"`
	Rule     string `json:"rule,omitempty"`
}

// newFailure makes the error under which a URL's run fails: its type is the
// reason, its message holds words and numbers only, for messages are plain text
// even where payloads are encrypted.
func newFailure(reason crawl.Reason, last crawl.Outcome, attempts int) error {
	d := FailureDetails{Status: last.Status, Attempts: attempts, Proxy: last.Proxy, Rule: last.Rule}
	msg := fmt.Sprintf("%s after %d attempts", reason, attempts)
	if last.Status != 0 {
		msg += fmt.Sprintf(", last answer %d", last.Status)
	}
	return temporal.NewNonRetryableApplicationError(msg, string(reason), nil, d)
}
