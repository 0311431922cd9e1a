package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server serves metrics until it is closed.
type Server struct {
	// URL of the metrics.
	URL    string
	server *http.Server
	ended  chan error
}

// Handler serves a source at any path.
func Handler(from Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(from()) // who asked is gone
	})
}

// Serve serves a source at an address such as "127.0.0.1:9464".
// Without a host that is the loopback interface, and port 0 is any that is free.
func Serve(ctx context.Context, addr string, from Source) (*Server, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("give an address such as 127.0.0.1:9464, not %q", addr)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w", addr, err)
	}
	const patience = 10 * time.Second
	server := &Server{
		URL: "http://" + listener.Addr().String() + "/metrics",
		server: &http.Server{Handler: Handler(from), ReadHeaderTimeout: patience, ReadTimeout: patience,
			WriteTimeout: patience},
		ended: make(chan error, 1),
	}
	go func() { server.ended <- server.server.Serve(listener) }()
	return server, nil
}

// Close ends it.
func (s *Server) Close() error {
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
