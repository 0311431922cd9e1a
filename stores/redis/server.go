package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/stores"
)

// oldest is the first major version that speaks RESP3, which the client
// asks for.
const oldest = 6

const waysOut = "start one, or use --redis process, or --redis embedded"

// program is the server's.
func program() programs.Program { return programs.Named(driverName) }

// find looks for the server's program.
func find() (string, error) {
	return server.Find(program(), "use --redis embedded or a URL ("+urls+")")
}

// busOffset is how far the port on which nodes of a cluster talk to each other is
// above the one for clients.
const busOffset = 10_000

// openProcess starts a server. One of a cluster gets a port that leaves room for its
// second one.
func openProcess(ctx context.Context, bin string, cluster bool, options stores.Options) (*Store, error) {
	above := 0
	if cluster {
		above = busOffset
	}
	return server.Launch(bin, above, func(port int) (*Store, error) { return start(ctx, bin, port, options, "") })
}

// start starts a server on a port, or a sentinel if watch says what it is to do.
func start(ctx context.Context, bin string, port int, options stores.Options, watch string) (*Store, error) {
	home, err := server.NewHome(options.Dir, "redis", "nobody")
	if err != nil {
		return nil, err
	}
	password := passwordOf(options)
	name := "redis.conf"
	args := arguments("127.0.0.1", port, options)
	if watch != "" { // it writes to its file, which is in a folder that it owns
		name = "data/redis.conf"
		args = append(args, "--sentinel")
	}
	file, err := home.WriteSecret(name, config(password)+watch)
	if err != nil {
		return nil, err
	}
	args = append([]string{file, "--dir", home.Data, "--daemonize", "no"}, args...)
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env = home.Dir.Path, server.Env()
	child, err := home.Start(cmd)
	if err != nil {
		return nil, err
	}
	store := newStore(child, stores.Info{Kind: stores.KindProcess, Detail: "child process of " + bin + home.As})
	store.base = goredis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Password: password}
	if options.Settings["appendonly"] == "yes" && server.InMemory(home.Data) {
		store.self.About.Detail += "; its folder " + home.Dir.Path +
			" is in memory, where a flush costs nothing: set TMPDIR to one on a disk"
	}
	err = store.await(ctx, func(ctx context.Context) (bool, error) {
		f, err := info(ctx, store.admin)
		return f["process_id"] == strconv.Itoa(child.PID()), err
	})
	if err != nil {
		return nil, errors.Join(err, child.Close())
	}
	return store, nil
}

// passwordOf is the password of a server started here.
func passwordOf(options stores.Options) string {
	if text := options.Settings["requirepass"]; text != "" {
		return text
	}
	return server.NewPassword()
}

// arguments are the arguments of every server started here, except its
// password and its folder.
func arguments(bind string, port int, options stores.Options) []string {
	args := []string{"--bind", bind, "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no"}
	for name, value := range options.Settings {
		if name != "requirepass" {
			args = append(args, "--"+name, value)
		}
	}
	return args
}

// await waits until the server answers. Another one could have got the port
// first: ours is to say whether what answers is not it. The admin client is open
// if no error is returned.
func (r *Store) await(ctx context.Context, ours func(context.Context) (bool, error)) error {
	taken := func(words string) bool { return strings.Contains(words, "Address already in use") }
	return server.Await(ctx, r.self.Own, taken, func(ctx context.Context) error {
		if err := r.connect(ctx); err != nil {
			return err
		}
		ok, err := ours(ctx)
		if err == nil && !ok {
			err = server.ErrPortTaken
		}
		if err != nil {
			return errors.Join(err, r.admin.Close())
		}
		return nil
	})
}

func isURL(spec string) bool {
	scheme, _, ok := strings.Cut(spec, "://")
	return ok && (scheme == "redis" || scheme == "rediss" || scheme == "unix")
}

func openURL(ctx context.Context, spec string, options stores.Options) (*Store, error) {
	// What url.Parse complains about may be a piece of a password, so its
	// errors are not shown.
	u, err := url.Parse(spec)
	if err != nil {
		return nil, stores.WrongSpec(driverName, "is not a valid URL: write redis://user:password@host:port/database "+
			"and %%-encode what is special in a password")
	}
	opt, err := goredis.ParseURL(spec)
	if err != nil {
		password, _ := u.User.Password()
		said := server.Redact(strings.TrimPrefix(err.Error(), "redis: "), spec, password, url.QueryEscape(password))
		return nil, stores.WrongSpec(driverName, "is not a valid URL: %s", said)
	}
	opt.Password = passwordFromEnv(opt.Password)
	store := newStore(nil, stores.Info{Kind: stores.KindURL,
		Detail: "a server that was already running; it may serve others too"})
	store.base = *opt
	store.options = options
	ctx, cancel := context.WithTimeout(ctx, server.ReachTimeout)
	defer cancel()
	if err := store.connect(ctx); err != nil {
		if why := turnedAway(ctx, opt, err); why != nil {
			return nil, why
		}
		return nil, explain(err, opt)
	}
	if err := store.usable(ctx); err != nil {
		return nil, errors.Join(explain(err, opt), store.admin.Close())
	}
	return store, nil
}

// passwordFromEnv is the password of a URL, or that of the environment if it
// has none, as redis-cli takes it.
func passwordFromEnv(password string) string {
	return cmp.Or(password, os.Getenv("REDISCLI_AUTH"))
}

// noTLS is in the error of a handshake with a server that does not answer it, or not by TLS.
var noTLS = regexp.MustCompile("tls: |deadline exceeded|i/o timeout|EOF")

// explain turns the first error of a server into one line with a way out.
func explain(err error, opt *goredis.Options) error {
	if why := unusable(err, opt.Addr, opt.Password); why != nil {
		return why
	}
	text := server.Redact(format.OneLine(err.Error()), opt.Password)
	switch {
	case errors.Is(err, errOld):
		return err
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"),
		strings.Contains(text, "ERR AUTH"), strings.Contains(text, "invalid password"):
		return fmt.Errorf("redis at %s refuses the login (%s): give user and password in the URL, or the password in "+
			"REDISCLI_AUTH",
			opt.Addr, text)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("connect to redis at %s: %w", opt.Addr, context.Canceled)
	}
	if opt.TLSConfig != nil && noTLS.MatchString(text) {
		text += "; does the server speak TLS? If not, write redis:// in place of rediss://"
	}
	return fmt.Errorf("no redis reached at %s (%s): %s", opt.Addr, text, waysOut)
}

func survey(context.Context) []stores.Finding {
	return []stores.Finding{server.Survey(program(), "use --redis with a URL, or --redis embedded")}
}

// config is a configuration file that sets the password.
func config(password string) string {
	var builder strings.Builder
	builder.WriteString(`requirepass "`)
	for _, c := range []byte(password) {
		switch {
		case c == '"' || c == '\\':
			builder.WriteByte('\\')
			builder.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&builder, `\x%02x`, c)
		default:
			builder.WriteByte(c)
		}
	}
	builder.WriteString("\"\n")
	return builder.String()
}

func openContainer(ctx context.Context, engine server.Engine, options stores.Options) (*Store, error) {
	password := passwordOf(options)
	const path = "/etc/quotabench.conf"
	spec := server.ContainerSpec{
		Image: cmp.Or(options.Image, defaultImage),
		Port:  6379,
		Dir:   options.Dir, NoPull: options.NoPull,
		Files: map[string]string{path: config(password)},
		Command: func(listen string, port int) []string {
			return append([]string{"redis-server", path}, arguments(listen, port, options)...)
		},
	}
	var store *Store
	err := engine.Run(ctx, spec, func(container server.Container) error {
		store = newStore(container, stores.Info{Kind: stores.KindContainer, Detail: engine.Detail(spec.Image)})
		store.base = goredis.Options{Addr: net.JoinHostPort(container.Host(), strconv.Itoa(container.Port())),
			Password: password}
		// A server without a password takes every one, so it has to name ours.
		return store.await(ctx, func(ctx context.Context) (bool, error) {
			set, err := store.admin.ConfigGet(ctx, "requirepass").Result()
			return set["requirepass"] == password, err
		})
	})
	if err != nil {
		return nil, err
	}
	return store, nil
}
