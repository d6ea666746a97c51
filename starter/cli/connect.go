package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// connectTimeout bounds every first contact with a service.
const connectTimeout = 5 * time.Second

// Defaults where neither a flag, a variable, a profile nor Env.Services names a service.
const (
	defaultAddress   = "127.0.0.1:7233"
	defaultNamespace = "default"
	defaultRedis     = "redis://127.0.0.1:6379"
)

// target is where the services are, after flags, environment, profile and
// Env.Services were asked, in this order.
type target struct {
	temporal client.Options
	redis    *redis.Options
	// redisURL names the Redis without its credentials.
	redisURL string
	started  string
}

// target resolves the two services' addresses without contacting any.
func (a *App) target(ctx context.Context) (target, error) {
	temporal, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
		ConfigFileProfile: a.opts.profile,
		EnvLookup:         envLookup{a.env},
	})
	if err != nil {
		return target{}, usage("check --profile, TEMPORAL_PROFILE and the file that TEMPORAL_CONFIG_FILE names",
			"Temporal's client configuration cannot be read: %s", oneLine(err.Error()))
	}
	set(&temporal.HostPort, a.opts.address)
	set(&temporal.Namespace, a.opts.namespace)
	redisAt := a.opts.redis
	if redisAt == "" {
		redisAt = a.env.getenv("HOLDFAST_REDIS")
	}
	found := Services{}
	if a.env.Services != nil && (temporal.HostPort == "" || redisAt == "") {
		if found, err = a.env.Services(ctx); err != nil {
			return target{}, err
		}
	}
	if temporal.HostPort == "" {
		temporal.HostPort = or(found.Address, defaultAddress)
	}
	if temporal.Namespace == "" {
		temporal.Namespace = or(found.Namespace, defaultNamespace)
	}
	options, shown, err := parseRedis(or(redisAt, or(found.Redis, defaultRedis)))
	if err != nil {
		return target{}, err
	}
	return target{temporal: temporal, redis: options, redisURL: shown, started: found.Started}, nil
}

// set overwrites v where a flag was given.
func set(v *string, flag string) {
	if flag != "" {
		*v = flag
	}
}

func or(v, other string) string {
	if v != "" {
		return v
	}
	return other
}

// parseRedis reads a redis:// URL or host:port. The second value names it
// without credentials. Parse errors never repeat the URL: it holds a password.
func parseRedis(at string) (*redis.Options, string, error) {
	const hint = "give --redis or HOLDFAST_REDIS as redis://host:port/db"
	if !strings.Contains(at, "://") {
		at = "redis://" + at
	}
	u, err := url.Parse(at)
	if err != nil || (u.Host == "" && u.Scheme != "unix") {
		return nil, "", usage(hint, "the Redis address is not a URL")
	}
	options, err := redis.ParseURL(at)
	if err != nil {
		return nil, "", usage(hint, "the Redis address is not valid: its scheme is %q, its host %q", u.Scheme, u.Host)
	}
	options.DialTimeout = connectTimeout
	options.DisableIdentity = true
	u.User, u.RawQuery = nil, ""
	return options, u.String(), nil
}

// dialRedis connects to Redis and asks it once, without retries.
func (a *App) dialRedis(ctx context.Context, t target) (*redis.Client, error) {
	probeCtx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := probeRedis(probeCtx, t.redis); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unreachable(err, a.startHint(t, "check that it runs, or name another with --redis or HOLDFAST_REDIS"),
			"Redis at %s cannot be used: %s", t.redisURL, redisCause(err))
	}
	return redis.NewClient(t.redis), nil
}

// probeRedis dials once and pings once. The dial comes first and alone: the
// client's own would be tried five times and logged.
func probeRedis(ctx context.Context, o *redis.Options) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, or(o.Network, "tcp"), o.Addr)
	if err != nil {
		return err
	}
	_ = conn.Close() // nothing was said on it
	probe := *o
	probe.MaxRetries = -1
	probe.PoolSize = 1
	p := redis.NewClient(&probe)
	err = p.Ping(ctx).Err()
	return errors.Join(err, p.Close())
}

// redisCause puts go-redis' error in words; it holds no credential.
func redisCause(err error) string {
	var slow net.Error
	switch text := err.Error(); {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return fmt.Sprintf("no answer within %s", span(connectTimeout))
	case strings.HasPrefix(text, "NOAUTH"):
		return "it wants a password (redis://:PASSWORD@host:port)"
	case strings.HasPrefix(text, "WRONGPASS"):
		return "it refuses the user or the password"
	default:
		return oneLine(firstLine(text))
	}
}

// dialTemporal connects to Temporal and asks for its capabilities once.
func (a *App) dialTemporal(ctx context.Context, t target) (client.Client, error) {
	o := t.temporal
	o.Logger = sdkLogger{a.logger()}
	o.ConnectionOptions.GetSystemInfoTimeout = connectTimeout
	dial := client.DialContext
	if a.env.DialTemporal != nil {
		dial = func(ctx context.Context, o client.Options) (client.Client, error) { return a.env.DialTemporal(ctx, o) }
	}
	c, err := dial(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unreachable(err, a.startHint(t, "check that it runs, or name another with --address or TEMPORAL_ADDRESS"),
			"Temporal at %s cannot be used: %s", t.temporal.HostPort, temporalCause(err))
	}
	return c, nil
}

func (a *App) startHint(t target, other string) string {
	if t.started != "" {
		return "start it with " + t.started + ", or " + other
	}
	return other
}

// temporalCause puts the SDK's dial error in words.
func temporalCause(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || isDeadline(err) {
		return fmt.Sprintf("no answer within %s", span(connectTimeout))
	}
	text := strings.TrimPrefix(firstLine(err.Error()), "failed reaching server: ")
	if i := strings.LastIndex(text, "dial tcp "); i >= 0 {
		text = strings.TrimSuffix(text[i:], `"`)
	}
	return oneLine(text)
}

func isDeadline(err error) bool {
	var d *serviceerror.DeadlineExceeded
	return errors.As(err, &d)
}

// temporalFailure turns an error of a call over a standing connection into what
// the user is to see.
func (a *App) temporalFailure(t target, verb string, err error) error {
	var gone *serviceerror.NamespaceNotFound
	var away *serviceerror.Unavailable
	switch {
	case errors.As(err, &gone):
		return refused("no_namespace", "name another with --namespace or TEMPORAL_NAMESPACE, or create it: temporal operator namespace create --namespace "+t.temporal.Namespace,
			"Temporal at %s has no namespace %q", t.temporal.HostPort, t.temporal.Namespace)
	case errors.As(err, &away), isDeadline(err):
		return unreachable(err, a.startHint(t, "check that it runs, then run the same command again"),
			"Temporal at %s went away: %s", t.temporal.HostPort, oneLine(firstLine(err.Error())))
	case isMissingAttribute(err):
		return a.notSetUp(t)
	}
	return fmt.Errorf("%s: %w", verb, err)
}

func (a *App) notSetUp(t target) *Failure {
	return refused("not_set_up", "run: "+a.command("setup"),
		"Temporal's namespace %q lacks Holdfast's search attributes", t.temporal.Namespace)
}

// isMissingAttribute recognises the refusal of a start with unregistered search attributes.
func isMissingAttribute(err error) bool {
	var bad *serviceerror.InvalidArgument
	return errors.As(err, &bad) && strings.Contains(bad.Message, "Holdfast") &&
		strings.Contains(strings.ToLower(bad.Message), "search attribute")
}
