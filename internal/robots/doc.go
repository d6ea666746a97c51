// Package robots reads robots.txt as RFC 9309 says and keeps what it means for
// one crawler in Redis, so that each origin is asked once a day for all workers.
//
// The parser is our own: of Google's 400 public cases jimsmart/grobotstxt v1.0.3
// fails 9 and temoto/robotstxt 24, among them group selection and the longest
// match, and neither decodes percent-encoded unreserved characters, which RFC 9309
// §2.2.2 asks for. Beyond the RFC it reads Crawl-delay and takes common misspellings of
// the directives for what they mean, as Google's parser does.
package robots
