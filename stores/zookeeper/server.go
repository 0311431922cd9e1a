package zookeeper

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

// super is the user of servers started here. A server lets the user of that name do
// everything whose digest it was started with.
const super = "super"

// find looks for the script that starts a server, on the PATH and where package
// managers put it, and for Java.
func find() (string, error) {
	missing := func(what string) error {
		return errors.New("no " + what + " found on the PATH or in the usual folders: install it (" + install() + "), or use --zookeeper with a URL (" + urls + ")")
	}
	if _, err := exec.LookPath("java"); err != nil && !server.Exists("/usr/bin/java") {
		return "", missing("java, which ZooKeeper needs,")
	}
	if p, err := exec.LookPath("zkServer.sh"); err == nil {
		return filepath.Abs(p)
	}
	for _, p := range []string{
		"/usr/share/zookeeper/bin/zkServer.sh", "/opt/zookeeper/bin/zkServer.sh",
		"/opt/homebrew/opt/zookeeper/libexec/bin/zkServer.sh", "/usr/local/opt/zookeeper/libexec/bin/zkServer.sh",
	} {
		if server.Exists(p) {
			return p, nil
		}
	}
	return "", missing("ZooKeeper (zkServer.sh)")
}

func install() string { return server.Install("zookeeper", "zookeeper", "zookeeper", "zookeeper") }

func openProcess(ctx context.Context, bin string, o stores.Options) (*Store, error) {
	var z *Store
	err := server.OnFreePort(func(port int) (err error) {
		z, err = start(ctx, bin, port, o)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	return z, nil
}

func start(ctx context.Context, bin string, port int, o stores.Options) (*Store, error) {
	dir, err := server.NewDir(o.Dir)
	if err != nil {
		return nil, err
	}
	user, err := server.ServiceAccount("zookeeper", "nobody")
	if err == nil {
		err = dir.Enterable(user)
	}
	as := ""
	switch {
	case err != nil:
		user, as = nil, ", running as root ("+server.OneLine(err.Error())+")"
	case user != nil:
		as = ", running as " + user.Name
	}
	data, err := dir.Mkdir("data", user)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	file, err := dir.WriteSecret("zoo.cfg", config(data, port, o), user)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	password := server.NewPassword()
	cmd := exec.Command(bin, "start-foreground", file) // becomes Java
	cmd.Dir = data
	cmd.Env = append(server.Env(), "ZOOCFGDIR="+dir.Path, "ZOO_LOG_DIR="+data, "JMXDISABLE=true",
		"JVMFLAGS=-Xmx512m -Dzookeeper.DigestAuthenticationProvider.superDigest="+digest(super, password))
	c, err := server.Start(cmd, dir, server.StopRedis, server.StopRedis, user)
	if err != nil {
		return nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	z := &Store{
		servers: []string{addr}, user: super, password: password, own: c,
		info: stores.Info{
			Kind: stores.KindProcess, Detail: "one server, child process of " + bin + as,
			Durability: "transaction log, fsync before each answer", Addr: addr,
		},
	}
	// The server may be built without anything that prints why it ended.
	taken := func(string) bool {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			_ = l.Close()
		}
		return err != nil
	}
	if err := server.Await(ctx, c, taken, z.reach); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return z, nil
}

// config is the configuration of a server started here.
func config(data string, port int, o stores.Options) string {
	lines := []string{
		"tickTime=2000", "dataDir=" + data, "clientPort=" + strconv.Itoa(port), "clientPortAddress=127.0.0.1",
		"admin.enableServer=false", "maxClientCnxns=0", "4lw.commands.whitelist=srvr",
	}
	for name, value := range o.Settings {
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
	if _, err = z.admin.Create(probe, nil, zk.FlagEphemeral, nobody); err == nil {
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

// version asks the first server for its version, which the four letters srvr do.
func (z *Store) version(timeout time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp", z.servers[0], timeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(clock.Wall{}.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(c, 4096))
	if err != nil {
		return "", err
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
	if z.info.Version, err = z.version(timeout); err != nil && z.own != nil {
		return err
	}
	z.admin, err = z.client(ctx, stores.ConnOptions{Timeout: timeout})
	return err
}

func openURL(ctx context.Context, spec string) (*Store, error) {
	z, err := parse(spec)
	if err != nil {
		return nil, err
	}
	z.info.Kind, z.info.Detail = stores.KindURL, "servers that were already running; they may serve others too"
	z.info.Durability = "transaction log; what is synced before an answer, the server decides"
	if err = z.connect(ctx, dialTimeout); err == nil {
		return z, nil
	}
	text := server.Redact(server.OneLine(err.Error()), z.password)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, fmt.Errorf("connect to zookeeper at %s: %w", z.info.Addr, context.Canceled)
	case errors.Is(err, zk.ErrAuthFailed):
		return nil, fmt.Errorf("zookeeper at %s refuses the login (%s): give user and password in the URL, or the password in %s", z.info.Addr, text, passwordEnv)
	}
	return nil, fmt.Errorf("no zookeeper reached at %s (%s): start one, or use --zookeeper process", z.info.Addr, text)
}

// parse reads URLs such as zk://user:password@a:2181,b:2181. Errors show nothing of
// what may be a password.
func parse(spec string) (*Store, error) {
	wrong := errors.New("--zookeeper is not a valid URL: write zk://user:password@host:port, further servers as host:port after commas, and %-encode what is special in a password")
	_, rest, _ := strings.Cut(spec, "://")
	z := &Store{}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		name, password, _ := strings.Cut(rest[:i], ":")
		var err1, err2 error
		z.user, err1 = url.PathUnescape(name)
		z.password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil || z.user == "" {
			return nil, wrong
		}
		rest = rest[i+1:]
	}
	if z.user != "" && z.password == "" {
		z.password = os.Getenv(passwordEnv)
	}
	for addr := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), ",") {
		host, port, err := net.SplitHostPort(addr)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || strings.ContainsAny(host, "/?#@") {
			return nil, wrong
		}
		z.servers = append(z.servers, addr)
	}
	z.info.Addr = strings.Join(z.servers, ",")
	return z, nil
}
