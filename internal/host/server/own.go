package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
)

// Server is a server that was started here.
type Server interface {
	// PID is its first process if that is a child of ours, and otherwise 0.
	PID() int
	// Ended reports whether it is gone by itself.
	Ended() bool
	// LastWords is the end of its log, on one line.
	LastWords() string
	// Local reports whether its processes are of this machine: then they can
	// be listed and confined.
	Local() bool
	// Processes are the numbers of its processes, parents before their children.
	Processes(ctx context.Context) ([]int, error)
	// Confine lets it run on some cores alone, with processes that it starts later.
	Confine(ctx context.Context, numbers []int) error
	// Close ends it and removes all that it kept.
	Close() error
}

// OpenTimeout bounds how long a server may take to answer for the first time. Tests
// give it longer.
var OpenTimeout = 30 * time.Second

// ReachTimeout bounds how long a server that was running already may take to answer. Tests
// set it to minutes.
var ReachTimeout = 5 * time.Second

// attemptTimeout bounds the first attempt to reach a child. On a lost race for the port
// it may be a program that accepts and never answers. The attempt after
// one that used it up has twice as long, so that a slow machine gets there.
const attemptTimeout = time.Second

// ErrPortTaken is returned by a server's start if another program was faster
// to use the port.
var ErrPortTaken = errors.New("the port was taken by another program")

// Await calls try until it succeeds, until the server is gone, or until it turns
// out that another program has the port. taken knows the last words of a server
// that did not get it.
func Await(ctx context.Context, server Server, taken func(words string) bool, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	limit := attemptTimeout
	for {
		from := clock.Nano()
		err := attempt(ctx, limit, try)
		switch {
		case err == nil && !server.Ended():
			return nil
		case server.Ended(): // another program may have answered
			words := server.LastWords()
			if taken(words) {
				return ErrPortTaken
			}
			return fmt.Errorf("it ended at once: %s", words)
		case errors.Is(err, ErrPortTaken):
			return err
		case (clock.Wall{}).Sleep(ctx, 5*time.Millisecond) != nil:
			return fmt.Errorf("it did not answer within %v (%s): %w", OpenTimeout, format.OneLine(err.Error()), ctx.Err())
		case clock.Nano()-from > int64(limit):
			limit *= 2
		}
	}
}

func attempt(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return try(ctx)
}

// ErrNotOurs is the error of what can be done with servers alone that were started
// here.
var ErrNotOurs = errors.New("the server was not started here, on this machine")

// Local is true: a child runs where we do.
func (c *Child) Local() bool { return true }

// Processes are the child and its descendants. Of no child it is [ErrNotOurs].
func (c *Child) Processes(context.Context) ([]int, error) {
	if c == nil {
		return nil, ErrNotOurs
	}
	tree := cores.Tree(c.PID())
	if len(tree) == 0 || c.Ended() {
		return nil, errors.New("the server has ended")
	}
	return tree, nil
}

// Confine lets the child and its descendants run on some cores alone. One that has
// ended needs none. Of no child it is [ErrNotOurs].
func (c *Child) Confine(_ context.Context, numbers []int) error {
	if c == nil {
		return ErrNotOurs
	}
	if c.Ended() {
		return nil
	}
	return cores.Confine(c.PID(), cores.Of(numbers...))
}

// AllOnThisHost reports whether all addresses are of this machine, as [OnThisHost]
// tells.
func AllOnThisHost(addrs []string) bool {
	return !slices.ContainsFunc(addrs, func(text string) bool { return !OnThisHost(text) })
}

// OnThisHost reports whether an address is of this machine: the path of a socket,
// or host:port with a loopback host or with an address of one of its interfaces.
// Names other than localhost are not looked up.
func OnThisHost(addr string) bool {
	if strings.HasPrefix(addr, "/") || strings.HasPrefix(addr, "@") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	switch {
	case host == "localhost" || ip != nil && ip.IsLoopback():
		return true
	case ip == nil:
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, addr := range own {
		if n, ok := addr.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
