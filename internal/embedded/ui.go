package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
)

// webUI serves Temporal's Web UI. The ui-server's own Start ends the process when
// its port is taken; here its routes hang on a server of ours.
type webUI struct {
	server *http.Server
	done   chan struct{}
}

func startUI(p Ports, namespace string, warn func(error)) (*webUI, error) {
	handler, err := uiHandler(p, namespace)
	if err != nil {
		return nil, fmt.Errorf("make web ui: %w", err)
	}
	l, err := net.Listen("tcp", loopback(p.UI))
	if err != nil {
		return nil, fmt.Errorf("start web ui: %w", err)
	}
	u := &webUI{
		server: &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		},
		done: make(chan struct{}),
	}
	go func() {
		defer close(u.done)
		if err := u.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			warn(fmt.Errorf("web ui: %w", err))
		}
	}()
	return u, nil
}

// uiPatience is how long open pages may finish what they ask; they poll.
const uiPatience = time.Second

func (u *webUI) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, uiPatience)
	defer cancel()
	var err error
	if u.server.Shutdown(ctx) != nil {
		err = u.server.Close()
	}
	<-u.done
	if err != nil {
		return fmt.Errorf("stop web ui: %w", err)
	}
	return nil
}

func uiHandler(p Ports, namespace string) (http.Handler, error) {
	provider, err := config.NewConfigProviderWithRefresh(settings{&config.Config{
		TemporalGRPCAddress: loopback(p.Temporal),
		Host:                "127.0.0.1",
		Port:                p.UI,
		EnableUI:            true,
		DefaultNamespace:    namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		CORS:                config.CORS{CookieInsecure: true}, // plain http on loopback
	}})
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(io.Discard)
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure(),
		csrf.EnsureTokenCookie(false), middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, false)))
	e.Pre(route.PublicPath(""))
	route.SetHealthRoute(e)
	if err := route.SetAPIRoutes(e, provider, []api.Middleware{headers.WithForwardHeaders([]string{"Caller-Type"})}); err != nil {
		return nil, err
	}
	route.SetAuthRoutes(e, provider)
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	if assets, err = fs.Sub(assets, "local"); err != nil {
		return nil, err
	}
	route.SetUIRoutes(e, "", assets, provider)
	route.SetRenderRoute(e, "/")
	return onlyLoopback(e, p.UI), nil
}

// onlyLoopback refuses requests that name another host: a web page that has its
// name resolve to 127.0.0.1 must not reach the API behind the UI.
func onlyLoopback(next http.Handler, port int) http.Handler {
	hosts := map[string]bool{loopback(port): true, fmt.Sprintf("localhost:%d", port): true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts[r.Host] {
			http.Error(w, "this server answers to 127.0.0.1 and localhost only", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

type settings struct{ c *config.Config }

func (s settings) GetConfig() (*config.Config, error) { return s.c, nil }
