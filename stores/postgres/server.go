package postgres

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/stores"
)

const (
	waysOut = "start one, or use --postgres process, or --postgres embedded"
	// ownUser is the role and ownDatabase the database of servers started here.
	ownUser     = "quotabench"
	ownDatabase = "postgres"
)

// program is the server's.
func program() programs.Program { return programs.Named(driverName) }

// find returns the folder with the server's programs. They are seldom on
// the PATH: distributions keep versions side by side. The newest wins.
func find() (string, error) {
	complete := func(dir string) bool {
		return programs.IsFile(filepath.Join(dir, "initdb")) && programs.IsFile(filepath.Join(dir, "postgres"))
	}
	if path, ok := program().OnPath(); ok {
		if real, err := filepath.EvalSymlinks(path); err == nil && complete(filepath.Dir(real)) {
			return filepath.Abs(filepath.Dir(real))
		}
	}
	found := slices.DeleteFunc(program().Folders(), func(dir string) bool { return !complete(dir) })
	if len(found) == 0 {
		return "", fmt.Errorf("%w, or use --postgres embedded or a URL (%s)", program().Missing(), urls)
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(versionIn(a), versionIn(b)) }), nil
}

// versionIn is the last number in a path such as /usr/lib/postgresql/15/bin.
func versionIn(path string) float64 {
	isNumber := func(r rune) bool { return r == '.' || '0' <= r && r <= '9' }
	parts := strings.FieldsFunc(path, func(r rune) bool { return !isNumber(r) })
	for _, text := range slices.Backward(parts) {
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			return value
		}
	}
	return 0
}

// accounts are the users whom servers run as if we are root, which PostgreSQL refuses to run as.
var accounts = []string{"postgres", "nobody"}

func asRoot(err error) error { return format.Wrapf(err, "PostgreSQL refuses to run as root") }

func openProcess(ctx context.Context, bin string, options stores.Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, server.OpenTimeout)
	defer cancel()
	return server.Launch("PostgreSQL of "+bin, 0, func(port int) (*Store, error) { return start(ctx, bin, port, options) })
}

func start(ctx context.Context, bin string, port int, options stores.Options) (*Store, error) {
	s := planned{bin, server.NewPassword(), options}
	return s.serve(ctx, port, func(home *server.Home) error { return initDatabase(ctx, bin, home, s.password) })
}

// planned is a server that is to be started with the programs in bin.
type planned struct {
	bin, password string
	options       stores.Options
}

// serve starts it on a data directory that fill fills.
func (s planned) serve(ctx context.Context, port int, fill func(*server.Home) error) (*Store, error) {
	home, err := server.NewHome(s.options.Dir, accounts...)
	if err != nil {
		return nil, err
	}
	err = asRoot(home.Root)
	if err == nil {
		err = fill(home)
	}
	if err != nil {
		return nil, errors.Join(err, home.Dir.Remove())
	}
	program := filepath.Join(s.bin, "postgres")
	args := append([]string{"-D", home.Data, "-c", "unix_socket_directories="}, arguments("127.0.0.1", port, s.options)...)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = home.Dir.Path, server.Env()
	child, err := server.Start(cmd, home.Dir, server.StopPostgres, server.StopPostgres, home.User)
	if err != nil {
		return nil, err
	}
	store := newStore(child, stores.Info{Kind: stores.KindProcess, Detail: "child process of " + program + home.As})
	err = store.aim("127.0.0.1", port, s.password)
	if err == nil {
		err = store.await(ctx, "data_directory", home.Data)
	}
	if err != nil {
		return nil, errors.Join(err, child.Close())
	}
	return store, nil
}

// arguments are the arguments of every server started here.
func arguments(listen string, port int, options stores.Options) (args []string) {
	set := func(name, value string) { args = append(args, "-c", name+"="+value) }
	set("port", strconv.Itoa(port))
	set("listen_addresses", listen)
	set("max_connections", "300")
	// None by default, and a transaction of two phases is prepared.
	set("max_prepared_transactions", "300")
	// Strategies that retry provoke errors by the thousand: the log, which is
	// read in need alone, would fill the disk.
	set("log_min_messages", "fatal")
	for name, value := range options.Settings {
		set(name, value)
	}
	return args
}

// initDatabase fills the data directory. Nothing is flushed to disk: the data is
// thrown away with the server.
func initDatabase(ctx context.Context, bin string, home *server.Home, password string) error {
	pwfile, err := home.Dir.WriteSecret("password", verifier(password)+"\n", home.User)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(pwfile) }()
	cmd := exec.Command(filepath.Join(bin, "initdb"), "-D", home.Data, "-U", ownUser, "-A", "scram-sha-256", "--pwfile",
		pwfile,
		"-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir, cmd.Env = home.Dir.Path, server.Env()
	out, err := server.Run(ctx, cmd, home.User)
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, server.LastLines(out, 3))
	}
	return nil
}

// aim sets base to a server started here.
func (p *Store) aim(host string, port int, password string) error {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	cfg, err := pgxpool.ParseConfig(fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", ownUser, addr, ownDatabase))
	if err != nil {
		return err
	}
	forgetEnvironment(cfg.ConnConfig)
	cfg.ConnConfig.Password = password
	p.base = cfg
	return nil
}

// await waits until the server answers. Another one could have got the port
// first: ours has the setting. The admin pool is open if no error is returned.
func (p *Store) await(ctx context.Context, setting, value string) error {
	taken := func(words string) bool {
		return strings.Contains(words, "Address already in use") ||
			strings.Contains(words, "could not create any TCP/IP sockets")
	}
	return server.Await(ctx, p.self.Own, taken, func(ctx context.Context) error {
		if err := p.connect(ctx); err != nil {
			return err
		}
		var got string
		err := p.admin.QueryRow(ctx, "SELECT current_setting($1)", setting).Scan(&got)
		if err == nil && got != value {
			err = server.ErrPortTaken
		}
		if err != nil {
			p.admin.Close()
		}
		return err
	})
}

// forgetEnvironment takes back what pgx read from PG* variables, which are about
// another server.
func forgetEnvironment(config *pgx.ConnConfig) {
	config.Password = ""
	config.RuntimeParams = map[string]string{}
	config.ValidateConnect = nil
	config.RequireAuth = ""
	config.MinProtocolVersion = "3.0"
	config.MaxProtocolVersion = "3.0"
}

func isURL(spec string) bool {
	return strings.HasPrefix(spec, "postgres://") || strings.HasPrefix(spec, "postgresql://")
}

func openURL(ctx context.Context, spec string, options stores.Options) (*Store, error) {
	const form = "write postgres://user:password@host:port/database and %-encode what is special in a password"
	// The errors of both parsers may quote pieces of a password.
	if _, err := url.Parse(spec); err != nil {
		return nil, errors.New("--postgres is not a valid URL: " + form)
	}
	cfg, err := pgxpool.ParseConfig(spec)
	if err != nil {
		return nil, errors.New("--postgres is not a valid URL, or it has a parameter that is not: " + form)
	}
	store := newStore(nil, stores.Info{Kind: stores.KindURL,
		Detail: "a server that was already running; it may serve others too"})
	store.base = cfg
	ctx, cancel := context.WithTimeout(ctx, server.ReachTimeout)
	defer cancel()
	if err := store.connect(ctx); err != nil {
		return nil, explain(err, store.self.About.Addr, cfg.ConnConfig.Password)
	}
	if err := store.usable(ctx); err != nil {
		store.admin.Close()
		if _, ok := errors.AsType[*pgconn.PgError](err); ok {
			err = explain(err, store.self.About.Addr, cfg.ConnConfig.Password)
		}
		return nil, err
	}
	return store, nil
}

// explain turns the first error of a server into one line with a way out.
func explain(err error, addr, password string) error {
	text := server.Redact(format.OneLine(err.Error()), password)
	if why := unusable(err, addr); why != nil {
		return errors.New(server.Redact(format.OneLine(why.Error()), password))
	}
	var pgError *pgconn.PgError
	switch {
	case errors.Is(err, errOld):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("connect to postgresql at %s: %w", addr, context.Canceled)
	case errors.As(err, &pgError) && strings.HasPrefix(pgError.Code, "28"): // invalid authorization
		return fmt.Errorf("postgresql at %s refuses the login (%s): give user and password in the URL, or the password in "+
			"PGPASSWORD",
			addr, pgError.Message)
	case errors.As(err, &pgError):
		return fmt.Errorf("postgresql at %s refuses the connection: %s (SQLSTATE %s)",
			addr, server.Redact(format.OneLine(pgError.Message), password), pgError.Code)
	}
	// One address after the other is tried, with the same result for nearly always
	// the same reason: the last one will do.
	if dial, ok := errors.AsType[*net.OpError](err); ok {
		text = dial.Error()
	}
	return fmt.Errorf("no postgresql reached at %s (%s): %s", addr, text, waysOut)
}

// verifier is what a server started here keeps of its password. The password is random, so
// hashing it once protects it as well as the usual 4,096 times, which take a
// millisecond of both sides at each connection of each run.
func verifier(password string) string {
	mac := func(key []byte, text string) []byte {
		hash := hmac.New(sha256.New, key)
		hash.Write([]byte(text))
		return hash.Sum(nil)
	}
	salt := rand.Text()
	salted := mac([]byte(password), salt+"\x00\x00\x00\x01")
	stored := sha256.Sum256(mac(salted, "Client Key"))
	text := base64.StdEncoding.EncodeToString
	return "SCRAM-SHA-256$1:" + text([]byte(salt)) + "$" + text(stored[:]) + ":" + text(mac(salted, "Server Key"))
}

func survey(context.Context) []stores.Finding {
	user, err := server.ServiceAccount(accounts...)
	if err != nil {
		return []stores.Finding{{
			Name: program().Title, Detail: asRoot(err).Error(),
			Advice: "run as a user other than root, or use --postgres with a URL",
		}}
	}
	bin, err := find()
	finding := server.Surveyed(program(), bin, err)
	if finding.Found && user != nil {
		finding.Detail += ", to be run as user " + user.Name
	}
	return []stores.Finding{finding}
}

func openContainer(ctx context.Context, engine server.Engine, options stores.Options) (*Store, error) {
	password := server.NewPassword()
	// Shown by the server, so that it is known among others; it is no secret.
	options.Settings = maps.Clone(options.Settings)
	if options.Settings == nil {
		options.Settings = map[string]string{}
	}
	options.Settings["cluster_name"] = ownUser + " " + rand.Text()
	const pwfile = "/etc/quotabench.password"
	spec := server.ContainerSpec{
		Image: cmp.Or(options.Image, defaultImage),
		Port:  5432,
		Dir:   options.Dir, NoPull: options.NoPull,
		Files: map[string]string{pwfile: password},
		Env: map[string]string{
			"POSTGRES_USER": ownUser, "POSTGRES_DB": ownDatabase, "POSTGRES_PASSWORD_FILE": pwfile,
			// By default the image trusts every client on 127.0.0.1.
			"POSTGRES_INITDB_ARGS": "--auth-host=scram-sha-256 --encoding=UTF8 --locale=C --no-sync",
		},
		Command: func(listen string, port int) []string {
			return append([]string{"postgres"}, arguments(listen, port, options)...)
		},
	}
	var store *Store
	err := engine.Run(ctx, spec, func(container server.Container) error {
		store = newStore(container, stores.Info{Kind: stores.KindContainer, Detail: engine.Detail(spec.Image)})
		if err := store.aim(container.Host(), container.Port(), password); err != nil {
			return err
		}
		return store.await(ctx, "cluster_name", options.Settings["cluster_name"])
	})
	if err != nil {
		return nil, err
	}
	return store, nil
}
