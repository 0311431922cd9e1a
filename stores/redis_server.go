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
	password := redisPassword(o)
	config, err := dir.writeSecret("redis.conf", redisConfig(password), nil)
	if err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	args := append([]string{config, "--dir", dir.path, "--daemonize", "no"}, redisSettings("127.0.0.1", port, o)...)
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env = dir.path, childEnv()
	c, err := startChild(cmd, dir, stopRedis, stopRedis, nil)
	if err != nil {
		return nil, err
	}
	r := &Redis{
		base: redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Password: password},
		own:  c,
		info: Info{Kind: KindProcess, Detail: "child process of " + bin},
	}
	err = r.await(ctx, func(ctx context.Context) (bool, error) {
		f, err := r.serverInfo(ctx)
		return f["process_id"] == strconv.Itoa(c.pid()), err
	})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return r, nil
}

// redisPassword is the password of a server started here.
func redisPassword(o Options) string {
	if p := o.Settings["requirepass"]; p != "" {
		return p
	}
	return newPassword()
}

// redisSettings are the arguments of every server started here, but for its
// password and its folder.
func redisSettings(bind string, port int, o Options) []string {
	args := []string{"--bind", bind, "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no"}
	for name, value := range o.Settings {
		if name != "requirepass" {
			args = append(args, "--"+name, value)
		}
	}
	return args
}

// await waits until the server answers. Another one could have got the port
// first: ours is to say whether what answers is not it. The admin client is open
// where no error is returned.
func (r *Redis) await(ctx context.Context, ours func(context.Context) (bool, error)) error {
	taken := func(words string) bool { return strings.Contains(words, "Address already in use") }
	return await(ctx, r.own, taken, func(ctx context.Context) error {
		if err := r.connect(ctx); err != nil {
			return err
		}
		ok, err := ours(ctx)
		if err == nil && !ok {
			err = errPortTaken
		}
		if err != nil {
			return errors.Join(err, r.admin.Close())
		}
		return nil
	})
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
