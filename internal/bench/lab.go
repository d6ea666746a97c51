package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"

	"holdfast/internal/lab"
)

// Roles of Serve.
const (
	roleSite    = "site"
	roleProxies = "proxies"
)

// Serve is the other side of a benchmark, in a process of its own: args are
// "site", or "proxies" and their number. It says in one line of JSON where they
// are, answers every further line on stdin with its CPU time in nanoseconds, and
// ends with stdin or ctx.
func Serve(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) (err error) {
	var at []string
	switch {
	case len(args) == 1 && args[0] == roleSite:
		site, err := lab.NewSite(lab.SiteOptions{MaxLog: 1})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, site.Close()) }()
		at = []string{site.URL("")}
	case len(args) == 2 && args[0] == roleProxies:
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 {
			return fmt.Errorf("bench: %q is no number of proxies", args[1])
		}
		for range n {
			p, err := lab.NewProxy(lab.ProxyOptions{})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.Close()) }()
			at = append(at, p.ListLine())
		}
	default:
		return fmt.Errorf("bench: serve %q: no such role", args)
	}
	if err := json.NewEncoder(stdout).Encode(at); err != nil {
		return fmt.Errorf("say where it is: %w", err)
	}
	return answer(ctx, stdin, stdout)
}

// answer tells the CPU time until stdin or ctx ends.
func answer(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for scan := bufio.NewScanner(stdin); scan.Scan(); {
			select {
			case asked <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, more := <-asked:
			if !more {
				return nil
			}
			spent, err := ownCPU()
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(stdout, int64(spent)); err != nil {
				return fmt.Errorf("say the CPU time: %w", err)
			}
		}
	}
}

// scene is the site and the proxies, seen from the benchmark.
type scene struct {
	site    string   // the site's URL, without a slash at its end
	proxies []string // lines of a proxies file
	others  []*other
}

// other is one of the processes.
type other struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
}

func newScene(program []string, proxies int) (_ *scene, err error) {
	s := &scene{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	sites, err := s.launch(program, roleSite)
	if err != nil {
		return nil, err
	}
	s.site = sites[0]
	s.proxies, err = s.launch(program, roleProxies, strconv.Itoa(proxies))
	return s, err
}

func (s *scene) launch(program []string, args ...string) ([]string, error) {
	cmd := exec.Command(program[0], append(program[1:len(program):len(program)], args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	o := &other{cmd: cmd, stdin: stdin, lines: bufio.NewReader(stdout)}
	s.others = append(s.others, o)
	line, err := o.lines.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	var at []string
	if err := json.Unmarshal(line, &at); err != nil || len(at) == 0 {
		return nil, fmt.Errorf("start %s: it answered %q", args[0], line)
	}
	return at, nil
}

// cpu is the CPU time of all of them.
func (s *scene) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, o := range s.others {
		if _, err := io.WriteString(o.stdin, "\n"); err != nil {
			return 0, fmt.Errorf("ask a site process: %w", err)
		}
		line, err := o.lines.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("ask a site process: %w", err)
		}
		n, err := strconv.ParseInt(line[:len(line)-1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("ask a site process: %w", err)
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

// close ends the processes: by the end of their input, or else by force.
func (s *scene) close() {
	for _, o := range s.others {
		_ = o.stdin.Close()
		kill := time.AfterFunc(5*time.Second, func() { _ = o.cmd.Process.Kill() })
		_ = o.cmd.Wait() // its exit says nothing about the benchmark
		kill.Stop()
	}
}
