package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/temporal"

	"holdfast/internal/journal"
)

// Stack is the running services of a data directory.
type Stack struct {
	// TemporalAddr is where clients dial, "127.0.0.1:7233"; "" without Temporal.
	TemporalAddr string
	// Namespace is the one that was made there.
	Namespace string
	// UIURL is the Web UI's page, "http://127.0.0.1:8233"; "" without it.
	UIURL string
	// RedisAddr and RedisURL are Redis', "" without it.
	RedisAddr, RedisURL string
	// DataDir is absolute.
	DataDir string
	// IsNew: the directory was made, or was empty.
	IsNew bool
	// Restored tells what Redis found.
	Restored journal.Restored

	dir      *dataDir
	redis    *journal.Server
	temporal temporal.Server
	ui       *webUI
	closeLog func() error

	once     sync.Once
	closeErr error
}

// Start runs the services and returns when they answer.
//
// Errors: *LockedError, *VersionError, *ForeignDirError, *PortError,
// journal.ErrCorrupt, and the system's. Nothing runs after an error.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	d, err := openDir(o.Dir, o.Program)
	if err != nil {
		return nil, err
	}
	s := &Stack{DataDir: d.path, IsNew: d.isNew, dir: d}
	defer func() {
		if err != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
			defer cancel()
			err = errors.Join(err, s.Close(stop))
		}
	}()
	unlock := lockPorts(ctx)
	defer unlock() // again does nothing
	ports, err := choosePorts(d, o)
	if err != nil {
		return nil, err
	}
	if !o.NoRedis {
		if err := s.startRedis(ports, o); err != nil {
			return nil, err
		}
	}
	if !o.NoTemporal {
		if err := s.startTemporal(ctx, ports, o); err != nil {
			return nil, err
		}
	}
	if !o.NoUI {
		if s.ui, err = startUI(ports, o.Namespace, o.Warn); err != nil {
			return nil, err
		}
		s.UIURL = "http://" + loopback(ports.UI)
	}
	unlock()
	if !o.NoTemporal {
		if err := s.await(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Stack) startRedis(p Ports, o Options) error {
	r, err := journal.Open(s.dir.file(redisDir), journal.Options{Port: p.Redis, OnError: o.Warn})
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	s.redis, s.RedisAddr, s.RedisURL, s.Restored = r, r.Addr(), r.URL(), r.Restored()
	return nil
}

func (s *Stack) startTemporal(ctx context.Context, p Ports, o Options) error {
	logger, closeLog, err := openLog(s.dir.file(logsDir, "temporal.log"))
	if err != nil {
		return err
	}
	s.closeLog = closeLog
	history, visibility, err := databases(s.dir, o)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start temporal: %w", err)
	}
	server, err := newTemporal(serverConfig(history, visibility, p), p, logger)
	if err != nil {
		return err
	}
	s.temporal = server
	if err := server.Start(); err != nil {
		return fmt.Errorf("start temporal: %w", err)
	}
	s.TemporalAddr, s.Namespace = loopback(p.Temporal), o.Namespace
	return nil
}

// await returns when Temporal answers for a workflow: its shards are there.
func (s *Stack) await(ctx context.Context) error {
	c, err := client.NewLazyClient(client.Options{HostPort: s.TemporalAddr, Namespace: s.Namespace, Logger: quiet{}})
	if err != nil {
		return fmt.Errorf("dial temporal: %w", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, 2*time.Second)
		_, err := c.WorkflowService().DescribeWorkflowExecution(try, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: s.Namespace, Execution: readiness,
		})
		done()
		var notFound *serviceerror.NotFound
		if errors.As(err, &notFound) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await temporal: %w", errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close stops the UI, Temporal and Redis in this order, Redis with a snapshot, and
// lets go of the directory. Workers must have stopped before. If ctx ends before
// Temporal has stopped, the rest is stopped all the same. Idempotent.
func (s *Stack) Close(ctx context.Context) error {
	s.once.Do(func() { s.closeErr = s.close(ctx) })
	return s.closeErr
}

func (s *Stack) close(ctx context.Context) error {
	var errs []error
	if s.ui != nil {
		errs = append(errs, s.ui.stop(ctx))
	}
	if s.temporal != nil {
		stopped := make(chan error, 1)
		go func() { stopped <- s.temporal.Stop() }()
		select {
		case err := <-stopped:
			if err != nil {
				errs = append(errs, fmt.Errorf("stop temporal: %w", err))
			}
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("stop temporal: %w", ctx.Err()))
		}
	}
	if s.redis != nil {
		if err := s.redis.Close(); err != nil {
			errs = append(errs, fmt.Errorf("stop redis: %w", err))
		}
	}
	if s.closeLog != nil {
		errs = append(errs, s.closeLog())
	}
	return errors.Join(append(errs, s.dir.close())...)
}
