package stores

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/clock"
)

// oldestRedis is the first major version that speaks RESP3, which the client
// asks for.
const oldestRedis = 6

const redisWaysOut = "start one, or use --redis process, or --redis embedded"

// findRedis looks for the server's program on the PATH and where package
// managers put it, which a PATH without sbin or of a GUI session may not name.
func findRedis() (string, error) {
	if p, err := exec.LookPath("redis-server"); err == nil {
		return filepath.Abs(p)
	}
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin", "/opt/local/bin", "/snap/bin"} {
		if p := filepath.Join(dir, "redis-server"); exists(p) {
			return p, nil
		}
	}
	return "", errors.New("no redis-server found on the PATH or in the usual folders: install it, or use --redis embedded or a URL (" + redisURLs + ")")
}

func openRedisProcess(ctx context.Context, bin string, o Options) (*Redis, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var r *Redis
	err := startOnFreePort(func(port int) (err error) {
		r, err = startRedis(ctx, bin, port, o)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	return r, nil
}

func startRedis(ctx context.Context, bin string, port int, o Options) (*Redis, error) {
	dir, err := newPrivateDir(o.dir())
	if err != nil {
		return nil, err
	}
	args := []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir.path,
		"--daemonize", "no", "--save", "", "--appendonly", "no",
	}
	for name, value := range o.Settings {
		args = append(args, "--"+name, value)
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env = dir.path, childEnv()
	c, err := startChild(cmd, dir, stopRedis, stopRedis, nil)
	if err != nil {
		return nil, err
	}
	r := &Redis{
		base:  redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Password: o.Settings["requirepass"]},
		child: c,
		info:  Info{Kind: KindProcess, Detail: "child process of " + bin},
	}
	if err := r.awaitChild(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return r, nil
}

// awaitChild waits until the child answers. Another server could have got the
// port first: what answers must have the child's process number.
func (r *Redis) awaitChild(ctx context.Context) error {
	for {
		err := r.tryChild(ctx)
		switch {
		case err == nil:
			return nil
		case r.child.ended():
			words := r.child.lastWords()
			if strings.Contains(words, "Address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("it ended at once: %s", words)
		case errors.Is(err, errPortTaken):
			return err
		case (clock.Wall{}).Sleep(ctx, 5*time.Millisecond) != nil:
			return fmt.Errorf("it did not answer within %v: %w", openTimeout, ctx.Err())
		}
	}
}

// tryChild connects once. The admin client is open where it returns nil.
func (r *Redis) tryChild(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := r.connect(ctx); err != nil {
		return err
	}
	st, _, err := r.Stats(ctx)
	if err == nil && st.pid != r.child.pid() {
		err = errPortTaken
	}
	if err != nil {
		return errors.Join(err, r.admin.Close())
	}
	return nil
}

func isRedisURL(spec string) bool {
	scheme, _, ok := strings.Cut(spec, "://")
	return ok && (scheme == "redis" || scheme == "rediss" || scheme == "unix")
}

func openRedisURL(ctx context.Context, spec string) (*Redis, error) {
	// What url.Parse complains about may be a piece of a password, so its
	// errors are not shown.
	u, err := url.Parse(spec)
	if err != nil {
		return nil, errors.New("--redis is not a valid URL: write redis://user:password@host:port/database and %-encode what is special in a password")
	}
	password, _ := u.User.Password()
	opt, err := redis.ParseURL(spec)
	if err != nil {
		return nil, fmt.Errorf("--redis is not a valid URL: %s", redact(strings.TrimPrefix(err.Error(), "redis: "), spec, password, url.QueryEscape(password)))
	}
	if opt.Password == "" { // as redis-cli does
		opt.Password = os.Getenv("REDISCLI_AUTH")
	}
	r := &Redis{base: *opt, info: Info{Kind: KindURL, Detail: "a server that was already running; it may serve others too"}}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := r.connect(ctx); err != nil {
		return nil, explainRedis(err, opt)
	}
	return r, nil
}

// explainRedis turns the first error of a server into one line with a way out.
func explainRedis(err error, opt *redis.Options) error {
	text := redact(oneLine(err.Error()), opt.Password)
	switch {
	case errors.Is(err, errOldRedis):
		return err
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"), strings.Contains(text, "NOPERM"), strings.Contains(text, "ERR AUTH"), strings.Contains(text, "invalid password"):
		return fmt.Errorf("redis at %s refuses the login (%s): give user and password in the URL, or the password in REDISCLI_AUTH", opt.Addr, text)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("connect to redis at %s: %w", opt.Addr, context.Canceled)
	}
	return fmt.Errorf("no redis reached at %s (%s): %s", opt.Addr, text, redisWaysOut)
}
