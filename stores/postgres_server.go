package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	postgresWaysOut = "start one, or use --postgres process, or --postgres embedded"
	// ownUser is the role and ownDatabase the database of servers started here.
	ownUser     = "quotabench"
	ownDatabase = "postgres"
)

// findPostgres returns the folder with the server's programs. They are seldom on
// the PATH: distributions keep versions side by side. The newest wins.
func findPostgres() (string, error) {
	complete := func(dir string) bool {
		return exists(filepath.Join(dir, "initdb")) && exists(filepath.Join(dir, "postgres"))
	}
	if p, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(p); err == nil && complete(filepath.Dir(real)) {
			return filepath.Abs(filepath.Dir(real))
		}
	}
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/lib/postgresql*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
		"/usr/local/pgsql/bin", "/usr/local/opt/postgresql*/bin", "/opt/homebrew/opt/postgresql*/bin",
		"/opt/local/lib/postgresql*/bin", "/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		dirs, _ := filepath.Glob(pattern) // the patterns are well-formed
		found = append(found, dirs...)
	}
	found = slices.DeleteFunc(found, func(d string) bool { return !complete(d) })
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL programs (initdb, postgres) found on the PATH or in the usual folders: install them, or use --postgres embedded or a URL (" + postgresURLs + ")")
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(versionIn(a), versionIn(b)) }), nil
}

// versionIn is the last number in a path such as /usr/lib/postgresql/15/bin.
func versionIn(path string) float64 {
	isNumber := func(r rune) bool { return r == '.' || '0' <= r && r <= '9' }
	parts := strings.FieldsFunc(path, func(r rune) bool { return !isNumber(r) })
	for _, s := range slices.Backward(parts) {
		if v, err := strconv.ParseFloat(s, 64); err == nil {
			return v
		}
	}
	return 0
}

func openPostgresProcess(ctx context.Context, bin string, o Options) (*Postgres, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	user, err := serverAccount()
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	var p *Postgres
	err = startOnFreePort(func(port int) (err error) {
		p, err = startPostgres(ctx, bin, port, user, o)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL of %s: %w", bin, err)
	}
	return p, nil
}

func startPostgres(ctx context.Context, bin string, port int, user *account, o Options) (*Postgres, error) {
	dir, err := newPrivateDir(o.dir())
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir.path, "data")
	password := newPassword()
	if err := enterable(dir.path, user); err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	if err := initDatabase(ctx, bin, dir, data, password, user); err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	args := append([]string{"-D", data, "-c", "unix_socket_directories="}, postgresSettings("127.0.0.1", port, o)...)
	cmd := exec.Command(filepath.Join(bin, "postgres"), args...)
	cmd.Dir, cmd.Env = dir.path, childEnv()
	c, err := startChild(cmd, dir, stopPostgres, stopPostgres, user)
	if err != nil {
		return nil, err
	}
	p := &Postgres{own: c, info: Info{Kind: KindProcess, Detail: "child process of " + filepath.Join(bin, "postgres")}}
	if user != nil {
		p.info.Detail += ", running as " + user.name
	}
	if err := p.aim("127.0.0.1", port, password); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if err := p.await(ctx, "data_directory", data); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return p, nil
}

// postgresSettings are the arguments of every server started here.
func postgresSettings(listen string, port int, o Options) (args []string) {
	set := func(name, value string) { args = append(args, "-c", name+"="+value) }
	set("port", strconv.Itoa(port))
	set("listen_addresses", listen)
	set("max_connections", "300")
	// Strategies that retry provoke errors by the thousand: the log, which nobody
	// reads, would fill the disk.
	set("log_min_messages", "fatal")
	for name, value := range o.Settings {
		set(name, value)
	}
	return args
}

// initDatabase fills the data directory. Nothing is flushed to disk: what a
// power cut leaves of it is of no use to anybody.
func initDatabase(ctx context.Context, bin string, dir *privateDir, data, password string, user *account) error {
	pwfile, err := dir.writeSecret("password", password+"\n", user)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(pwfile) }()
	cmd := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", ownUser, "-A", "scram-sha-256", "--pwfile", pwfile,
		"-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir, cmd.Env = dir.path, childEnv()
	if err := mkdirFor(user, data); err != nil {
		return err
	}
	out, err := runProcess(ctx, cmd, user)
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastLines(out, 3))
	}
	return nil
}

// enterable tells why another user's program could not work in the folder: the
// program itself fails without a word.
func enterable(path string, user *account) error {
	if user == nil {
		return nil
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("user %s, whom the server runs as, may not enter %s: set TMPDIR to a folder that all may enter", user.name, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// aim sets base to a server started here.
func (p *Postgres) aim(host string, port int, password string) error {
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
// first: ours has the setting. The admin pool is open where no error is returned.
func (p *Postgres) await(ctx context.Context, setting, value string) error {
	taken := func(words string) bool {
		return strings.Contains(words, "Address already in use") || strings.Contains(words, "could not create any TCP/IP sockets")
	}
	return await(ctx, p.own, taken, func(ctx context.Context) error {
		if err := p.connect(ctx); err != nil {
			return err
		}
		var got string
		err := p.admin.QueryRow(ctx, "SELECT current_setting($1)", setting).Scan(&got)
		if err == nil && got != value {
			err = errPortTaken
		}
		if err != nil {
			p.admin.Close()
		}
		return err
	})
}

// forgetEnvironment takes back what pgx read from PG* variables that speak about
// somebody else's server.
func forgetEnvironment(c *pgx.ConnConfig) {
	c.Password = ""
	c.RuntimeParams = map[string]string{}
	c.ValidateConnect = nil
	c.RequireAuth = ""
	c.MinProtocolVersion, c.MaxProtocolVersion = "3.0", "3.0"
}

func isPostgresURL(spec string) bool {
	return strings.HasPrefix(spec, "postgres://") || strings.HasPrefix(spec, "postgresql://")
}

func openPostgresURL(ctx context.Context, spec string) (*Postgres, error) {
	const form = "write postgres://user:password@host:port/database and %-encode what is special in a password"
	// The errors of both parsers may quote pieces of a password.
	if _, err := url.Parse(spec); err != nil {
		return nil, errors.New("--postgres is not a valid URL: " + form)
	}
	cfg, err := pgxpool.ParseConfig(spec)
	if err != nil {
		return nil, errors.New("--postgres is not a valid URL, or it has a parameter that is not: " + form)
	}
	p := &Postgres{base: cfg, info: Info{Kind: KindURL, Detail: "a server that was already running; it may serve others too"}}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.connect(ctx); err != nil {
		return nil, explainPostgres(err, p.info.Addr, cfg.ConnConfig.Password)
	}
	return p, nil
}

// explainPostgres turns the first error of a server into one line with a way out.
func explainPostgres(err error, addr, password string) error {
	text := redact(oneLine(err.Error()), password)
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, errOldPostgres):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("connect to postgresql at %s: %w", addr, context.Canceled)
	case errors.As(err, &pg) && strings.HasPrefix(pg.Code, "28"): // invalid authorization
		return fmt.Errorf("postgresql at %s refuses the login (%s): give user and password in the URL, or the password in PGPASSWORD", addr, pg.Message)
	case errors.As(err, &pg):
		return fmt.Errorf("postgresql at %s refuses the connection: %s (SQLSTATE %s)", addr, redact(oneLine(pg.Message), password), pg.Code)
	}
	// One address after the other is tried, with the same result for nearly always
	// the same reason: the last one will do.
	var dial *net.OpError
	if errors.As(err, &dial) {
		text = dial.Error()
	}
	return fmt.Errorf("no postgresql reached at %s (%s): %s", addr, text, postgresWaysOut)
}

// mkdirFor makes a directory that the user, or we where it is nil, own.
func mkdirFor(user *account, path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	if err := user.chown(path); err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	return nil
}
