// Package bench measures what a durable URL costs, against the two shapes it
// lies between: the floor, an empty workflow, under which no design on Temporal
// can go; and the naive shape, three regular activities in a child workflow.
//
// All three run in one process and one run, in turn, over the same Temporal, the
// same Redis, the same pool and the same results folder, so that a noisy machine
// changes the numbers of all and the ratios of none. The site and the proxies are
// processes of their own and not counted.
package bench
