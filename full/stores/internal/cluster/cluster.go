// Package cluster is what stores of several servers share: their URLs, and how servers of our own are started.
package cluster

import (
	"errors"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/host/server"
)

// Members is a URL of several servers with one login, such as
// http://user:password@a:2379,b:2379. Further servers may repeat the scheme.
type Members struct {
	Scheme, User, Password string
	// Addrs are the servers as host:port.
	Addrs []string
}

// Parse reads such a URL. A user without a password has that of the environment
// variable. ok is false for every other text.
func Parse(spec, passwordEnv string) (members Members, ok bool) {
	scheme, rest, _ := strings.Cut(spec, "://")
	members.Scheme = scheme
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		name, password, _ := strings.Cut(rest[:i], ":")
		var err1, err2 error
		members.User, err1 = url.PathUnescape(name)
		members.Password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil || members.User == "" {
			return Members{}, false
		}
		rest = rest[i+1:]
	}
	if members.User != "" && members.Password == "" {
		members.Password = os.Getenv(passwordEnv)
	}
	for addr := range strings.SplitSeq(rest, ",") {
		addr = strings.TrimPrefix(strings.TrimSuffix(addr, "/"), scheme+"://")
		host, port, err := net.SplitHostPort(addr)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" ||
			strings.ContainsAny(host, "/?#@") {
			return Members{}, false
		}
		members.Addrs = append(members.Addrs, addr)
	}
	return members, true
}

// Size is how many members "process" and "process:members=3" have. ok is false for other texts.
func Size(spec string) (n int, ok bool) {
	text, several := strings.CutPrefix(spec, "process:members=")
	if !several {
		return 1, spec == "process"
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 3 && n <= 7
}

// URLs are the servers as URLs without the login.
func (m *Members) URLs() []string {
	out := make([]string, len(m.Addrs))
	for i, text := range m.Addrs {
		out[i] = m.Scheme + "://" + text
	}
	return out
}

// Start starts so many servers by start, the first of them on the port and others on free ones, each on its own. What
// it started is closed again if it fails.
func Start(members, port int, start func(number, port int) (*server.Child, error)) (group server.Group, err error) {
	used := map[int]bool{}
	for len(group) < members && err == nil {
		var child *server.Child
		child, err = start(len(group), port)
		if err == nil {
			group = append(group, child)
			used[port] = true
			for used[port] && err == nil { // a server that does not listen yet leaves its port free
				port, err = server.FreePort(0)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, group.Close())
	}
	return group, nil
}
