package embedded

import (
	"errors"
	"fmt"
	"time"
)

// Options of a Stack.
type Options struct {
	// Dir is the data directory; made (0700) if it is not there. Required.
	Dir string
	// Program is what README.txt and errors call this program. Default "standalone".
	Program string

	// NoTemporal leaves the Temporal server and its UI out: another one is used.
	NoTemporal bool
	// NoUI leaves the Web UI out.
	NoUI bool
	// NoRedis leaves the Redis out: another one is used.
	NoRedis bool

	// WellKnownPorts takes 7233, 8233 and 6379 where they are free, for a new
	// directory. Ports are chosen once and kept in the directory.
	WellKnownPorts bool
	// TemporalPort, UIPort and RedisPort ask for that port and no other. 0: the
	// kept one.
	TemporalPort, UIPort, RedisPort int

	// Namespace is the namespace made in a new directory. Default "default".
	Namespace string
	// Retention is how long closed workflows are kept, for a new directory. It is
	// also how long their histories take disk: some 10 KiB a URL. Default 30 days.
	Retention time.Duration
	// Warn is told of what goes wrong in the background. Default: nobody.
	Warn func(error)
}

func (o *Options) defaults() error {
	if o.Dir == "" {
		return errors.New("embedded: no data directory given")
	}
	if o.NoTemporal && o.NoRedis {
		return errors.New("embedded: neither Temporal nor Redis is wanted")
	}
	for _, port := range []int{o.TemporalPort, o.UIPort, o.RedisPort} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("embedded: port %d is not a port", port)
		}
	}
	if o.Retention < 0 || o.Retention > 0 && o.Retention < time.Hour {
		return fmt.Errorf("embedded: a retention of %v: at least an hour", o.Retention)
	}
	if o.Program == "" {
		o.Program = "standalone"
	}
	if o.NoTemporal {
		o.NoUI = true
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Retention == 0 {
		o.Retention = 30 * 24 * time.Hour
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	return nil
}
