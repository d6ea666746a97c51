package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// PortsFile is the name of the file in the data directory that holds Ports.
const PortsFile = "ports.json"

// Ports is where the parts of a Stack listen, on 127.0.0.1. They are chosen once
// and kept: Temporal finds its services again at once only where they were.
type Ports struct {
	Temporal int `json:"temporal"` // gRPC, what clients dial
	UI       int `json:"ui"`
	Redis    int `json:"redis"`
	History  int `json:"history"`
	Matching int `json:"matching"`
	Worker   int `json:"worker"`
}

// ReadPorts reads the ports of a data directory. fs.ErrNotExist: nothing was
// started there yet. That it answers does not mean that something runs.
func ReadPorts(dir string) (Ports, error) {
	var p Ports
	data, err := os.ReadFile(filepath.Join(dir, PortsFile))
	if err != nil {
		return p, fmt.Errorf("read ports: %w", err)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("read ports: %s: %w", filepath.Join(dir, PortsFile), err)
	}
	return p, nil
}

const (
	// Chosen ports lie below the range from which systems take the ports of
	// outgoing connections, of which a crawl has many: one of those must not hold
	// a port of ours at the next start.
	portFrom, portTo = 20000, 32767
	// portPatience is how long a kept port may stay taken by the process before us.
	portPatience = 3 * time.Second
)

// choosePorts returns the ports of the directory, choosing those that are missing
// or taken, and keeps them.
func choosePorts(d *dataDir, o Options) (Ports, error) {
	p, err := ReadPorts(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	old := p
	taken := map[int]bool{}
	for _, want := range []struct {
		service          string
		port             *int
		asked, wellKnown int
		unused           bool
	}{
		{"Temporal", &p.Temporal, o.TemporalPort, 7233, o.NoTemporal},
		{"the Web UI", &p.UI, o.UIPort, 8233, o.NoUI},
		{"Redis", &p.Redis, o.RedisPort, 6379, o.NoRedis},
		{"Temporal history", &p.History, 0, 0, o.NoTemporal},
		{"Temporal matching", &p.Matching, 0, 0, o.NoTemporal},
		{"Temporal worker", &p.Worker, 0, 0, o.NoTemporal},
	} {
		if want.unused {
			continue
		}
		kept := *want.port
		switch {
		case want.asked != 0:
			if !waitFree(want.asked) {
				return p, &PortError{Service: want.service, Port: want.asked}
			}
			*want.port = want.asked
		case kept != 0 && !taken[kept] && waitFree(kept):
		case kept == 0 && o.WellKnownPorts && want.wellKnown != 0 && free(want.wellKnown):
			*want.port = want.wellKnown
		default:
			if *want.port, err = freePort(taken); err != nil {
				return p, fmt.Errorf("choose a port for %s: %w", want.service, err)
			}
		}
		taken[*want.port] = true
	}
	if p == old {
		return p, nil
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return p, fmt.Errorf("write ports: %w", err)
	}
	return p, writeFile(d.file(PortsFile), string(text)+"\n")
}

func freePort(taken map[int]bool) (int, error) {
	for range 200 {
		port := portFrom + rand.IntN(portTo-portFrom)
		if !taken[port] && free(port) {
			return port, nil
		}
	}
	return 0, errors.New("none is free")
}

func free(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func waitFree(port int) bool {
	for deadline := time.Now().Add(portPatience); ; time.Sleep(50 * time.Millisecond) {
		if free(port) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
