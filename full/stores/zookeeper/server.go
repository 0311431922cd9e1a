package zookeeper

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/stores"
)

// super is the user of servers started here. A server lets the user of that name do
// everything whose digest it was started with.
const super = "super"

// program is the server's: a script, and Java.
func program() programs.Program { return programs.Named(driverName) }

// find looks for the script that starts a server.
func find() (string, error) {
	return server.Find(program(), "use --store zookeeper=URL ("+urls+")")
}

// start starts the servers of an ensemble, the first of them on the port.
func start(ctx context.Context, bin string, members, port int, options stores.Options) (*Store, error) {
	store := newStore(nil, stores.Info{Kind: stores.KindProcess, Durability: "transaction log, fsync before each answer"})
	store.user, store.password = super, server.NewPassword()
	others, err := ensemble(members)
	if err != nil {
		return nil, err
	}
	own, err := cluster.Start(members, port, func(number, port int) (*server.Child, error) {
		return store.add(bin, number, port, others, options)
	})
	if err != nil {
		return nil, err
	}
	store.self.Own = own
	store.self.About.Addr = strings.Join(store.servers, ",")
	for i, s := range own {
		one := *store
		one.servers = store.servers[i : i+1]
		// The server may be built without anything that prints why it ended.
		taken := func(string) bool {
			listener, err := net.Listen("tcp", store.servers[i])
			if err == nil {
				_ = listener.Close()
			}
			return err != nil
		}
		if err := server.Await(ctx, s, taken, one.reach); err != nil {
			return nil, errors.Join(err, own.Close())
		}
		one.admin.Close()
	}
	if err := store.connect(ctx, dialTimeout); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return store, nil
}

// ensemble are the lines by which several servers know each other.
func ensemble(members int) (lines []string, err error) {
	for i := 0; i < members && members > 1 && err == nil; i++ {
		var port int
		port, err = server.FreePort(1)
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", i+1, port, port+1))
	}
	return append(lines, "initLimit=10", "syncLimit=5"), err
}

// add starts one server on a port.
func (z *Store) add(bin string, number, port int, others []string, options stores.Options) (*server.Child, error) {
	home, err := server.NewHome(options.Dir, "zookeeper", "nobody")
	if err != nil {
		return nil, err
	}
	file, err := home.WriteSecret("zoo.cfg", config(home.Data, port, others, options))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(home.Data, "myid"), []byte(strconv.Itoa(number+1)), 0o644); err != nil {
		return nil, errors.Join(err, home.Dir.Remove())
	}
	cmd := exec.Command(bin, "start-foreground", file) // becomes Java
	cmd.Dir = home.Data
	cmd.Env = append(server.Env(), "ZOOCFGDIR="+home.Dir.Path, "ZOO_LOG_DIR="+home.Data, "JMXDISABLE=true",
		"JVMFLAGS=-Xmx512m -Dzookeeper.DigestAuthenticationProvider.superDigest="+digest(super, z.password))
	z.servers = append(z.servers, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	z.self.About.Detail = format.Number(number+1, "server") + ", child process of " + bin + home.As
	return home.Start(cmd)
}

// config is the configuration of a server started here.
func config(data string, port int, others []string, options stores.Options) string {
	lines := append([]string{
		"tickTime=2000", "dataDir=" + data, "clientPort=" + strconv.Itoa(port), "clientPortAddress=127.0.0.1",
		"admin.enableServer=false", "maxClientCnxns=0", "4lw.commands.whitelist=srvr",
	}, others...)
	for name, value := range options.Settings {
		lines = append(lines, name+"="+value)
	}
	return strings.Join(lines, "\n") + "\n"
}

// digest is what ZooKeeper keeps of a password.
func digest(user, password string) string {
	sum := sha1.Sum([]byte(user + ":" + password))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// reach makes the admin client, once the server that answers is ours: in no other
// is our user allowed to read what nobody may.
func (z *Store) reach(ctx context.Context) error {
	if _, err := z.version(time.Second); err != nil {
		return err
	}
	err := z.connect(ctx, time.Second)
	if err != nil {
		return err
	}
	probe := "/quotabench-probe-" + server.NewPassword()
	nobody := []zk.ACL{{Perms: zk.PermAdmin, Scheme: "digest", ID: "nobody:at-all"}}
	_, err = z.admin.Create(probe, nil, zk.FlagEphemeral, nobody)
	if err == nil {
		_, _, err = z.admin.Get(probe)
		err = errors.Join(err, z.admin.Delete(probe, -1))
	}
	if errors.Is(err, zk.ErrNoAuth) {
		err = server.ErrPortTaken
	}
	if err != nil {
		z.admin.Close()
	}
	return err
}

var errNotServing = errors.New("it says that it is not currently serving requests")

// version asks the first server for its version, which the four letters srvr do.
func (z *Store) version(timeout time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", z.servers[0], timeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(clock.Wall{}.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(conn, 4096))
	if err != nil {
		return "", err
	}
	if strings.Contains(string(text), "not currently serving") {
		return "", errNotServing
	}
	_, v, ok := strings.Cut(string(text), "Zookeeper version: ")
	if !ok {
		return "", errors.New("it does not say its version")
	}
	if i := strings.IndexAny(v, "-, \n"); i >= 0 {
		v = v[:i]
	}
	return v, nil
}

// connect makes the admin client.
func (z *Store) connect(ctx context.Context, timeout time.Duration) (err error) {
	var silent error
	z.self.About.Version, silent = z.version(timeout)
	if silent != nil && z.self.Own != nil || errors.Is(silent, errNotServing) && len(z.servers) == 1 {
		return silent
	}
	z.admin, err = z.client(ctx, stores.ConnOptions{Timeout: timeout})
	return err
}

func openURL(ctx context.Context, spec string) (*Store, error) {
	store, err := parse(spec)
	if err != nil {
		return nil, err
	}
	store.self.About.Kind = stores.KindURL
	store.self.About.Detail = "servers that were already running; they may serve others too"
	store.self.About.Durability = "transaction log; what is synced before an answer, the server decides"
	err = store.connect(ctx, dialTimeout)
	if err == nil {
		err = store.usable(ctx)
		if err == nil {
			return store, nil
		}
		store.admin.Close()
	}
	return nil, cluster.Reach{Self: store.self, Password: store.password, Env: passwordEnv,
		Why: store.unusable}.Explain(ctx, err)
}

// parse reads URLs such as zk://user:password@a:2181,b:2181. Errors show nothing of
// what may be a password.
func parse(spec string) (*Store, error) {
	members, ok := cluster.Parse(spec, passwordEnv)
	if !ok {
		return nil, errors.New("--store zookeeper= is not a valid URL: " +
			"write zk://user:password@host:port, further servers as host:port after commas, " +
			"and %-encode what is special in a password")
	}
	store := newStore(nil, stores.Info{Addr: strings.Join(members.Addrs, ",")})
	store.servers = members.Addrs
	store.user = members.User
	store.password = members.Password
	store.self.Share(board{store})
	return store, nil
}

func survey(context.Context) []stores.Finding {
	return []stores.Finding{server.Survey(program(), "use --store zookeeper=URL")}
}
