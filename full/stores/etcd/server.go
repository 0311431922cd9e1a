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
func start(ctx context.Context, bin string, members, port int, options stores.Options) (*Store, error) {
	store := newStore(nil, stores.Info{Kind: stores.KindProcess, Durability: "write-ahead log, fsync before each answer"})
	name := server.NewPassword()
	folder := ""
	own, err := cluster.Start(members, port, func(number, port int) (*server.Child, error) {
		home, err := server.NewHome(options.Dir, "etcd", "nobody")
		if err != nil {
			return nil, err
		}
		folder = cmp.Or(folder, home.Data)
		store.endpoints = append(store.endpoints, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		store.self.About.Detail = format.Number(members, "member") + ", child process of " + bin + home.As
		cmd := exec.Command(bin, arguments(name, number, members, options)...)
		cmd.Args = append(cmd.Args, "--data-dir="+home.Data,
			"--listen-client-urls="+store.endpoints[number], "--advertise-client-urls="+store.endpoints[number])
		cmd.Dir, cmd.Env = folder, server.Env() // the peers' sockets are made in Dir
		return home.Start(cmd)
	})
	if err != nil {
		return nil, err
	}
	store.self.Own = own
	store.self.About.Addr = strings.ReplaceAll(strings.Join(store.endpoints, ","), "http://", "")
	if err := store.ready(ctx, own, name); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return store, nil
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
	// all are still there
	if err := server.Await(ctx, own, taken, func(context.Context) error { return nil }); err != nil {
		return err
	}
	return e.connect(ctx)
}

// arguments of a server started here. Its peers talk to it over a socket that other users cannot reach.
func arguments(name string, number, members int, options stores.Options) []string {
	var all []string
	for i := range members {
		all = append(all, fmt.Sprintf("%s-%d=unix://peers%d:0", name, i, i))
	}
	self, peers, _ := strings.Cut(all[number], "=")
	args := []string{
		"--name=" + self, "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=" +
			strings.Join(all, ","),
		"--logger=zap", "--log-level=error", "--bcrypt-cost=4",
	}
	for name, value := range options.Settings {
		args = append(args, "--"+name+"="+value)
	}
	return args
}

// isMember asks whether the server is of the cluster of that name and no other program's.
func isMember(ctx context.Context, client *clientv3.Client, name string, members int) error {
	response, err := client.MemberList(ctx)
	if err == nil && (len(response.Members) != members || !strings.HasPrefix(response.Members[0].Name, name)) {
		err = server.ErrPortTaken
	}
	return err
}

// secure lets the server ask for a password from now on.
func (e *Store) secure(ctx context.Context, client *clientv3.Client) error {
	password := server.NewPassword()
	for _, step := range []func() error{
		func() error { _, err := client.UserAdd(ctx, root, password); return err },
		func() error { _, err := client.RoleAdd(ctx, root); return err },
		func() error { _, err := client.UserGrantRole(ctx, root, root); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
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
	response, err := e.admin.Status(ctx, e.endpoints[0])
	if err != nil {
		return errors.Join(err, e.admin.Close())
	}
	e.self.About.Version = response.Version
	return nil
}

// parse reads URLs such as http://user:password@a:2379,b:2379. Errors show nothing
// of what may be a password.
func parse(spec string) (*Store, error) {
	members, ok := cluster.Parse(spec, passwordEnv)
	if !ok {
		return nil, errors.New("--store etcd= is not a valid URL: " +
			"write http://user:password@host:port, further members as host:port after commas, " +
			"and %-encode what is special in a password")
	}
	store := newStore(nil, stores.Info{Addr: strings.Join(members.Addrs, ",")})
	store.endpoints = members.URLs()
	store.user = members.User
	store.password = members.Password
	store.self.Share(&board{Store: store})
	if members.Scheme == "https" {
		store.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return store, nil
}

func openURL(ctx context.Context, spec string) (*Store, error) {
	store, err := parse(spec)
	if err != nil {
		return nil, err
	}
	store.self.About.Kind = stores.KindURL
	store.self.About.Detail = "a cluster that was already running; it may serve others too"
	store.self.About.Durability = "write-ahead log; what is synced before an answer, the server decides"
	ctx, cancel := context.WithTimeout(ctx, grpcstore.DialTimeout)
	defer cancel()
	err = store.connect(ctx)
	if err == nil {
		// Anyone may ask for the version: only a key shows whether the login is right.
		err = store.usable(ctx)
		if err != nil {
			_ = store.admin.Close() // why it is closed says more
		}
	}
	if err == nil {
		return store, nil
	}
	return nil, cluster.Reach{Self: store.self, Password: store.password, Env: passwordEnv,
		Why: store.unusable}.Explain(ctx, err)
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
