package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/machine/cores"
)

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
	return !slices.ContainsFunc(addrs, func(a string) bool { return !OnThisHost(a) })
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
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
