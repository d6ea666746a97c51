package main

import "context"

// noLog drops go-redis' own log: what it says comes back as errors too, in
// words meant for the user.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}
