package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/stores"
)

// ownUser is the user of servers started here.
const ownUser = "quotabench"

// firstTimeout bounds one attempt to reach a server started here: another program
// that has its port may accept and never answer.
const firstTimeout = time.Second

// program is the server's.
func program() programs.Program { return programs.Named(driverName) }

func find() (string, error) {
	return server.Find(program(), "use --store nats=URL ("+urls+")")
}

func start(ctx context.Context, bin string, port int, options stores.Options) (*Store, error) {
	home, err := server.NewHome(options.Dir, "nats", "nobody")
	if err != nil {
		return nil, err
	}
	name := filepath.Base(home.Dir.Path)
	password := server.NewPassword()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	file, err := home.WriteSecret("nats.conf", config(name, addr, home.Data, password, options))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(bin, "--config", file)
	cmd.Dir, cmd.Env = home.Data, server.Env()
	child, err := home.Start(cmd)
	if err != nil {
		return nil, err
	}
	n := newStore(child, stores.Info{
		Kind: stores.KindProcess, Detail: "one server with JetStream, child process of " + bin + home.As,
		Durability: "streams in files, synced every two minutes", Addr: addr,
	})
	n.url = "nats://" + addr
	n.user = ownUser
	n.password = password
	taken := func(words string) bool { return strings.Contains(words, "address already in use") }
	if err := server.Await(ctx, child, taken, func(ctx context.Context) error {
		return n.connect(ctx, name)
	}); err != nil {
		return nil, errors.Join(err, child.Close())
	}
	return n, nil
}

// config is the configuration of a server started here.
func config(name, addr, data, password string, options stores.Options) string {
	var builder strings.Builder
	fmt.Fprintf(&builder, "server_name: %q\nlisten: %q\n", name, addr)
	fmt.Fprintf(&builder, "jetstream {\n  store_dir: %q\n}\n", data)
	fmt.Fprintf(&builder, "authorization {\n  user: %q\n  password: %q\n}\n", ownUser, password)
	for name, value := range options.Settings {
		fmt.Fprintf(&builder, "%s: %s\n", name, value)
	}
	return builder.String()
}

// connect makes the admin client, and makes sure that the server has JetStream, and
// the name if one is given: another program could have got the port.
func (n *Store) connect(ctx context.Context, name string, more ...natsgo.Option) (err error) {
	timeout := firstTimeout
	if name == "" {
		timeout = dialTimeout
	}
	// A server that is back may have been away for longer than a lease lasts.
	back := natsgo.ReconnectHandler(func(*natsgo.Conn) { n.self.Renew(context.Background()) })
	n.admin, err = n.client(stores.ConnOptions{Timeout: timeout}, append(more, back)...)
	if err != nil {
		return err
	}
	if name != "" && n.admin.ConnectedServerName() != name {
		n.admin.Close()
		return server.ErrPortTaken
	}
	n.self.About.Version = n.admin.ConnectedServerVersion()
	n.js, err = jetstream.New(n.admin)
	if err == nil {
		_, err = n.js.AccountInfo(ctx)
	}
	if err != nil {
		n.admin.Close()
	}
	return err
}

func openURL(ctx context.Context, spec string) (*Store, error) {
	n, err := parse(spec)
	if err != nil {
		return nil, err
	}
	n.self.About.Kind = stores.KindURL
	n.self.About.Detail = "servers that were already running; they may serve others too"
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	// The server says by itself what it does not let this user do, and leaves the request
	// without an answer.
	asked, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	denied := natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
		if errors.Is(err, natsgo.ErrPermissionViolation) {
			refuse(err)
		}
	})
	err = n.connect(asked, "", denied)
	if err == nil {
		err = n.usable(asked)
		if err == nil {
			return n, nil
		}
		n.admin.Close()
	}
	if said := context.Cause(asked); errors.Is(said, natsgo.ErrPermissionViolation) {
		err = said
	}
	return nil, cluster.Reach{Self: n.self, Password: n.password, Env: passwordEnv, Why: n.unusable}.Explain(ctx, err)
}

// parse reads URLs such as nats://user:password@a:4222,b:4222. Errors show nothing
// of what may be a password.
func parse(spec string) (*Store, error) {
	members, ok := cluster.Parse(spec, passwordEnv)
	if !ok {
		return nil, errors.New("--store nats= is not a valid URL: " +
			"write nats://user:password@host:port, further servers as host:port after commas, " +
			"and %-encode what is special in a password")
	}
	n := newStore(nil, stores.Info{Addr: strings.Join(members.Addrs, ",")})
	n.url = strings.Join(members.URLs(), ",")
	n.user = members.User
	n.password = members.Password
	n.self.Share(board{n})
	return n, nil
}

func survey(context.Context) []stores.Finding {
	return []stores.Finding{server.Survey(program(), "use --store nats=URL")}
}
