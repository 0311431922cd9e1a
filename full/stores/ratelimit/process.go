package ratelimit

import (
	"context"
	crand "crypto/rand"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// group is the servers with one configuration.
type group struct {
	server.Group
	domain string // that no other user of the machine knows
	addrs  []string
}

// openProcess starts a Redis, and one server without a limit.
func openProcess(ctx context.Context, bin string, options stores.Options) (*Store, error) {
	store := &Store{bin: bin, options: options, password: server.NewPassword()}
	var err error
	settings := map[string]string{"requirepass": store.password}
	store.redis, err = redis.Open(ctx, "process", stores.Options{Dir: options.Dir, Settings: settings})
	if err != nil {
		return nil, fmt.Errorf("ratelimit needs a Redis of its own: %w", err)
	}
	store.Kind = driverName
	first, err := store.serve(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	store.info = stores.Info{
		Kind: stores.KindProcess,
		Detail: "servers for each configuration, child processes of " + bin +
			", counting in a redis-server " + store.redis.Info().Version + " of their own",
		Version: version(bin), Durability: "counts in Redis, without persistence", Addr: first.addrs[0],
	}
	return store, nil
}

// version is that of the module that the program was built from; "" if it does not
// say.
func version(bin string) string {
	info, err := buildinfo.ReadFile(bin)
	if err != nil || !strings.HasPrefix(info.Main.Version, "v") {
		return ""
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

// valid are the forms of the settings, by name. A limit has all of them.
var valid = map[string]*regexp.Regexp{
	"unit": regexp.MustCompile(`^(second|minute|hour|day)$`), "limit": regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`),
	"cache": regexp.MustCompile(`^(0|[1-9][0-9]{0,9})$`), "servers": regexp.MustCompile(`^[1-8]$`),
}

// Key of the descriptor that has the limit of servers started here.
const Key = "subject"

// config writes the configuration of a domain. Every value of the key has a count of its
// own; what has no rule has no limit.
func config(domain string, settings map[string]string) (string, error) {
	text := "domain: " + domain + "\ndescriptors:\n  - key: " + Key + "\n"
	if settings == nil {
		return text, nil
	}
	for name, form := range valid {
		if !form.MatchString(settings[name]) {
			return "", fmt.Errorf("the setting %s of ratelimit is %q", name, settings[name])
		}
	}
	if len(settings) != len(valid) {
		return "", errors.New("ratelimit is given settings that it does not have")
	}
	return text + "    rate_limit:\n      unit: " + settings["unit"] + "\n      requests_per_unit: " + settings["limit"] +
		"\n", nil
}

// serve returns the servers with these settings, and starts them if there are none.
func (s *Store) serve(ctx context.Context, settings map[string]string) (*group, error) {
	return s.Serve(ctx, settings, func() (*group, error) {
		g := &group{domain: strings.ToLower(crand.Text())}
		text, err := config(g.domain, settings)
		if err != nil {
			return nil, err
		}
		servers := 1
		if settings != nil {
			servers, _ = strconv.Atoi(settings["servers"]) // whose form was looked at
		}
		for range servers {
			if err := s.launch(ctx, g, text, settings); err != nil {
				return nil, errors.Join(err, g.Close())
			}
		}
		return g, nil
	})
}

// launch adds a server to the group.
func (s *Store) launch(ctx context.Context, g *group, text string, settings map[string]string) error {
	type running struct {
		child *server.Child
		addr  string
	}
	r, err := server.Launch(s.bin, 0, func(port int) (running, error) {
		child, err := s.start(ctx, port, g.domain, text, settings)
		return running{child, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, err
	})
	if err == nil {
		g.Group = append(g.Group, r.child)
		g.addrs = append(g.addrs, r.addr)
	}
	return err
}

// start starts a server, and waits until it answers for the domain.
func (s *Store) start(ctx context.Context, port int, domain, text string,
	settings map[string]string) (*server.Child, error) {
	accounts := []string{"nobody"}
	if !reachable(s.bin) {
		accounts = nil // no other user may enter its folder
	}
	home, err := server.NewHome(s.options.Dir, accounts...)
	if err != nil {
		return nil, err
	}
	if _, err := home.Dir.Mkdir("data/config", home.User); err != nil {
		return nil, errors.Join(err, home.Dir.Remove())
	}
	if _, err := home.WriteSecret("data/config/limits.yaml", text); err != nil {
		return nil, err
	}
	cmd := exec.Command(s.bin)
	cmd.Dir = home.Data
	cmd.Env = append(server.Env(),
		"RUNTIME_ROOT="+home.Dir.Path, "RUNTIME_SUBDIRECTORY=data", "RUNTIME_WATCH_ROOT=false",
		"GRPC_HOST=127.0.0.1", "GRPC_PORT="+
			strconv.Itoa(port), "HOST=127.0.0.1", "PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=error",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+s.redis.Info().Addr, "REDIS_AUTH="+s.password,
	)
	if cache := settings["cache"]; cache != "" {
		cmd.Env = append(cmd.Env, "LOCAL_CACHE_SIZE_IN_BYTES="+cache)
	}
	child, err := home.Start(cmd)
	if err != nil {
		return nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	taken := func(words string) bool { return strings.Contains(words, "address already in use") }
	ours := func(ctx context.Context) error { return s.answers(ctx, addr, domain, settings != nil) }
	if err := server.Await(ctx, child, taken, ours); err != nil {
		return nil, errors.Join(err, child.Close())
	}
	return child, nil
}

// answers asks a server, and looks whether it has the limit: the kernel lets several
// servers of one user share a port.
func (s *Store) answers(ctx context.Context, addr, domain string, limited bool) error {
	conn, err := s.dial(addr, stores.ConnOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	entry := &common.RateLimitDescriptor_Entry{Key: Key, Value: "?"}
	response, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: domain, Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{entry}}},
	})
	if err == nil && limited != (len(response.Statuses) == 1 && response.Statuses[0].CurrentLimit != nil) {
		err = server.ErrPortTaken
	}
	return err
}

// reachable reports whether all users may enter the program's folder.
func reachable(bin string) bool {
	for dir := filepath.Dir(bin); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}
