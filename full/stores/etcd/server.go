package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/full/stores/internal/grpcstore"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/stores"
)

// root is the user of servers started here. etcd asks for one of that name, with a
// role of that name, before it asks for logins.
const root = "root"

// program is the server's.
func program() programs.Program { return programs.Named(driverName) }

func find() (string, error) {
	return server.Find(program(), "use --store etcd=URL ("+urls+")")
}

// start starts the members of a cluster, the first of them on the port.
func start(ctx context.Context, bin string, members, port int, o stores.Options) (*Store, error) {
	e := newStore(nil, stores.Info{Kind: stores.KindProcess, Durability: "write-ahead log, fsync before each answer"})
	name := server.NewPassword()
	folder := ""
	own, err := cluster.Start(members, port, func(number, port int) (*server.Child, error) {
		home, err := server.NewHome(o.Dir, "etcd", "nobody")
		if err != nil {
			return nil, err
		}
		folder = cmp.Or(folder, home.Data)
		e.endpoints = append(e.endpoints, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		e.self.About.Detail = format.Number(members, "member") + ", child process of " + bin + home.As
		cmd := exec.Command(bin, arguments(name, number, members, o)...)
		cmd.Args = append(cmd.Args, "--data-dir="+home.Data,
			"--listen-client-urls="+e.endpoints[number], "--advertise-client-urls="+e.endpoints[number])
		cmd.Dir, cmd.Env = folder, server.Env() // the peers' sockets are made in Dir
		return home.Start(cmd)
	})
	if err != nil {
		return nil, err
	}
	e.self.Own = own
	e.self.About.Addr = strings.ReplaceAll(strings.Join(e.endpoints, ","), "http://", "")
	if err := e.ready(ctx, own, name); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return e, nil
}

// ready waits until each server answers, sets their password and connects to them.
func (e *Store) ready(ctx context.Context, own server.Group, name string) error {
	taken := func(words string) bool { return strings.Contains(words, "address already in use") }
	for i, s := range own {
		one := Store{endpoints: e.endpoints[i : i+1]}
		open, err := one.client(stores.ConnOptions{})
		if err != nil {
			return err
		}
		err = server.Await(ctx, s, taken, func(ctx context.Context) error { return isMember(ctx, open, name, len(own)) })
		if err == nil && i == len(own)-1 {
			err = e.secure(ctx, open)
		}
		err = errors.Join(err, open.Close())
		if err != nil {
			return err
		}
	}
	if err := server.Await(ctx, own, taken, func(context.Context) error { return nil }); err != nil { // all are still there
		return err
	}
	return e.connect(ctx)
}

// arguments of a server started here. Its peers talk to it over a socket that other users cannot reach.
func arguments(name string, number, members int, o stores.Options) []string {
	var all []string
	for i := range members {
		all = append(all, fmt.Sprintf("%s-%d=unix://peers%d:0", name, i, i))
	}
	self, peers, _ := strings.Cut(all[number], "=")
	args := []string{
		"--name=" + self, "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=" + strings.Join(all, ","),
		"--logger=zap", "--log-level=error", "--bcrypt-cost=4",
	}
	for name, value := range o.Settings {
		args = append(args, "--"+name+"="+value)
	}
	return args
}

// isMember asks whether the server is of the cluster of that name and no other program's.
func isMember(ctx context.Context, c *clientv3.Client, name string, members int) error {
	m, err := c.MemberList(ctx)
	if err == nil && (len(m.Members) != members || !strings.HasPrefix(m.Members[0].Name, name)) {
		err = server.ErrPortTaken
	}
	return err
}

// secure lets the server ask for a password from now on.
func (e *Store) secure(ctx context.Context, c *clientv3.Client) error {
	password := server.NewPassword()
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(ctx, root, password); return err },
		func() error { _, err := c.RoleAdd(ctx, root); return err },
		func() error { _, err := c.UserGrantRole(ctx, root, root); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("set its password: %w", err)
		}
	}
	e.user = root
	e.password = password
	return nil
}

// connect makes the admin client and asks the server for its version.
func (e *Store) connect(ctx context.Context) (err error) {
	e.admin, err = e.client(stores.ConnOptions{})
	if err != nil {
		return err
	}
	s, err := e.admin.Status(ctx, e.endpoints[0])
	if err != nil {
		return errors.Join(err, e.admin.Close())
	}
	e.self.About.Version = s.Version
	return nil
}

// parse reads URLs such as http://user:password@a:2379,b:2379. Errors show nothing
// of what may be a password.
func parse(spec string) (*Store, error) {
	m, ok := cluster.Parse(spec, passwordEnv)
	if !ok {
		return nil, errors.New("--store etcd= is not a valid URL: " +
			"write http://user:password@host:port, further members as host:port after commas, " +
			"and %-encode what is special in a password")
	}
	e := newStore(nil, stores.Info{Addr: strings.Join(m.Addrs, ",")})
	e.endpoints = m.URLs()
	e.user = m.User
	e.password = m.Password
	e.self.Share(&board{Store: e})
	if m.Scheme == "https" {
		e.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return e, nil
}

func openURL(ctx context.Context, spec string) (*Store, error) {
	e, err := parse(spec)
	if err != nil {
		return nil, err
	}
	e.self.About.Kind = stores.KindURL
	e.self.About.Detail = "a cluster that was already running; it may serve others too"
	e.self.About.Durability = "write-ahead log; what is synced before an answer, the server decides"
	ctx, cancel := context.WithTimeout(ctx, grpcstore.DialTimeout)
	defer cancel()
	err = e.connect(ctx)
	if err == nil {
		// Anyone may ask for the version: only a key shows whether the login is right.
		err = e.usable(ctx)
		if err != nil {
			_ = e.admin.Close() // why it is closed says more
		}
	}
	if err == nil {
		return e, nil
	}
	return nil, cluster.Reach{Self: e.self, Password: e.password, Env: passwordEnv, Why: e.unusable}.Explain(ctx, err)
}

// refused reports whether an error is about who asks.
func refused(err error) bool {
	text := err.Error()
	return status.Code(err) == codes.Unauthenticated || strings.Contains(text, "user name is empty") ||
		strings.Contains(text, "authentication failed") || strings.Contains(text, "authentication is not enabled")
}

func survey(context.Context) []stores.Finding {
	return []stores.Finding{server.Survey(program(), "use --store etcd=URL")}
}
