// Package results keeps what a crawl found: one JSON line a request and the
// bodies themselves, compressed and named by their content.
//
// The local sink lays a folder out so that it can be read with nothing but a
// shell:
//
//	DIR/docs/latest                            names the newest run's folder
//	DIR/docs/run-0001/campaign.yaml            the campaign as it ran
//	DIR/docs/run-0001/run.json                 who started what, and when
//	DIR/docs/run-0001/pages-w1-0001.jsonl      completed requests
//	DIR/docs/run-0001/failures-w1-0001.jsonl   failed, skipped and canceled ones
//	DIR/docs/run-0001/bodies/ab/12/ab12….zst   decoded bodies, by SHA-256
//	DIR/.tmp/w1-0001/                          what a live writer has not finished
//
// A line is on disk before Append returns, and appends that arrive together
// share one fsync. A process writes to files of its own, which it holds locked
// while it lives; files of dead processes are cleaned by Reconcile, which asks
// the frontier where each record is confirmed. So there is exactly one line per
// (run, id, replay), whoever was killed when.
package results
