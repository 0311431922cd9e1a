package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/proxy"
	"github.com/quotabench/quotabench/internal/stores/httpstore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// Command says what an instance runs, and how it is asked.
type Command struct {
	// Line is run by a shell.
	Line string
	// Request is the path and query of a request, with {subject} where that belongs.
	Request string
	// Counter is the key of the count of admitted units, likewise; empty if there is none.
	Counter string
	// Clock is the moment at which the clocks of instances stand, each by its skew later; zero for the wall clock.
	Clock time.Time
	// ClockIfAny has the clocks go on by themselves if they cannot be stopped.
	ClockIfAny bool
	faketime   string
	// Known says that an earlier search has seen that no command comes after an answer.
	Known bool
	// LimitNamed says that the limit is the service's own. Otherwise it is to take it from LIMIT.
	LimitNamed bool
	// Env are further variables of its environment, NAME=VALUE, in which names such as {port}
	// stand for what the instance is given.
	Env []string
	// Redis is behind the proxies, and stays the caller's; nil has one in memory started.
	Redis *redis.Client
	// Postgres is the PostgreSQL server behind them, likewise; nil for none.
	Postgres stores.Store
}

// given are the variables by which an instance finds its way to Redis. The password is that of its proxy.
func given(redis, password string) [][2]string {
	host, port, _ := net.SplitHostPort(redis)
	out := [][2]string{{"REDIS_URL", "redis://" + redis}, {"REDIS_HOST", host}, {"REDIS_PORT", port}}
	if password != "" {
		out[0][1] = "redis://:" + password + "@" + redis
		out = append(out, [2]string{"REDIS_PASSWORD", password})
	}
	return out
}

// environment is that of an instance, with the variables that it is given.
func (c *Command) environment(variables [][2]string, clock []string) []string {
	out := append(os.Environ(), clock...)
	var pairs []string
	for _, v := range variables {
		out = append(out, v[0]+"="+v[1])
		pairs = append(pairs, "{"+strings.ToLower(strings.ReplaceAll(v[0], "_", "-"))+"}", v[1])
	}
	filled := strings.NewReplacer(pairs...)
	for _, text := range c.Env {
		out = append(out, filled.Replace(text))
	}
	return out
}

// shell is what a shell runs. The shell becomes a simple command, so that there is no process between.
func (c *Command) shell() string {
	if strings.ContainsAny(c.Line, "=;&|(){}!\n") {
		return c.Line
	}
	return "exec " + c.Line
}

// Dial connects to Redis as the client of the search does, so that instances need no password. A client of
// its own logs in. It is not closed, since its connection is what Dial returns.
func (c *Command) Dial(ctx context.Context) (net.Conn, error) {
	options := *c.Redis.Options()
	var loggedIn net.Conn
	dial := options.Dialer
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		loggedIn = conn
		return conn, err
	}
	// As a new connection is, but for the login.
	options.Protocol = 2
	options.ClientName = ""
	options.DisableIdentity = true
	// A single connection, which is tried once.
	options.MaxRetries = -1
	options.DialerRetries = 1
	options.MinIdleConns = 0

	client := redis.NewClient(&options)
	err := client.Ping(ctx).Err()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect an instance to Redis: %w", err), client.Close())
	}
	// The client has set the deadline of its PING.
	err = loggedIn.SetDeadline(time.Time{})
	return loggedIn, err
}

// instance is one process of the service, with its own way to Redis.
type instance struct {
	index    int
	proxy    *proxy.Proxy
	redis    *proxy.Door
	postgres *proxy.Door // nil for none
	addr     string      // where it listens
	child    *server.Child
	http     *http.Client
	strategy strategies.Strategy
	clock    string // the file by which libfaketime knows the moment, if its clock is moved
}

// The strategy http asks an instance by what it takes for a store.

// HTTP is the client.
func (in *instance) HTTP() *http.Client { return in.http }

// Login adds nothing.
func (in *instance) Login(*http.Request) {}

// remote is an instance with the URL of its requests.
type remote struct {
	*instance
	url string
}

// URL has {subject} where that belongs.
func (r remote) URL() string { return r.url }

// add makes the instance's proxy and client, once.
func (w *Engine) add(i int) error {
	pool := stores.ConnOptions{Pool: 1 + w.Setup.Members(i), Timeout: w.Setup.Patience}
	in := &instance{index: i, proxy: proxy.New(), http: httpstore.NewClient(pool, false)}
	w.instances = append(w.instances, in)
	var err error
	in.redis, err = in.proxy.Redis(w.password, w.cmd.Dial)
	if err == nil && w.sql != nil {
		in.postgres, err = in.proxy.Postgres(w.sql.password, w.sql.config)
	}
	return err
}

// startFirst starts the instances for the first time. With a database the first one starts before the others, since it
// may make the tables, which are then remembered.
func (w *Engine) startFirst() error {
	if w.sql == nil {
		return w.startAll()
	}
	if err := w.start(w.base, w.instances[0]); err != nil {
		return err
	}
	if err := w.startAll(); err != nil {
		return err
	}
	return w.sql.keep(w.base)
}

// ways are the variables by which an instance finds its stores.
func (w *Engine) ways() string {
	text := "REDIS_URL, or REDIS_HOST and REDIS_PORT"
	if w.sql != nil {
		text = "DATABASE_URL, or PGHOST, PGPORT, PGUSER and PGPASSWORD; or " + text
	}
	return text
}

// startAll starts the instances that do not run, at the same time. It returns the first error: then nobody waits for
// the others. If the time of the search is up, it is the error of an instance.
func (w *Engine) startAll() error {
	ctx, cancel := context.WithCancelCause(w.base)
	defer cancel(nil)
	errs := make([]error, len(w.instances))
	var all sync.WaitGroup
	for i, instance := range w.instances {
		if instance.child == nil {
			all.Go(func() {
				errs[i] = w.start(ctx, instance)
				if errs[i] != nil {
					cancel(errs[i])
				}
			})
		}
	}
	all.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return cmp.Or(cmp.Or(errs...), ctx.Err())
	}
	return context.Cause(ctx)
}

// start starts an instance and waits until it answers.
func (w *Engine) start(ctx context.Context, in *instance) error {
	err := server.OnFreePort(0, func(port int) error {
		dir, err := server.NewDir("")
		if err != nil {
			return err
		}
		number := strconv.Itoa(port)
		in.clock = filepath.Join(dir.Path, "clock")
		if err := w.setClock(in); err != nil {
			return errors.Join(err, dir.Remove())
		}
		cmd := exec.Command("sh", "-c", w.cmd.shell())
		variables := append(given(in.redis.Addr(), w.password), [2]string{"PORT", number},
			[2]string{"LIMIT", strconv.FormatInt(w.Setup.Policy.Limit, 10)})
		if w.sql != nil {
			variables = append(variables, w.sql.given(in.postgres.Addr())...)
		}
		cmd.Env = w.cmd.environment(variables, w.stopped(in))
		in.child, err = server.Start(cmd, dir, os.Kill, os.Kill, nil)
		if err != nil {
			return err
		}
		in.addr = net.JoinHostPort("127.0.0.1", number)
		env := strategies.Env{
			Clock: wall, TrueClock: wall, Options: w.sel.Options, Instance: in.index, Instances: w.Setup.Instances,
			Clients: map[string]any{"service": remote{in, "http://" + in.addr + w.cmd.Request}},
		}
		in.strategy, err = w.sel.Open(w.base, env)
		if err != nil {
			return fmt.Errorf("open %s: %w", w.sel, err)
		}
		if err := w.answers(ctx, in); err != nil {
			return errors.Join(err, in.end())
		}
		return w.checkClock(in)
	})
	if errors.Is(err, server.ErrPortTaken) {
		err = unfit("the service does not start: %w: does it listen on the port of PORT?", err)
	}
	return err
}

// portTaken is in what programs say then, before or after a trace of calls.
var portTaken = regexp.MustCompile(`(?i)EADDRINUSE|address already in use`)

// mostCuts is how many first requests may lose their connection: another program may have the port for a moment.
const mostCuts = 20

// answers waits until an instance has answered its first request. What listened on its port before, and is gone after
// the request, was another program; it may also be what ended the connections of requests without an answer.
func (w *Engine) answers(ctx context.Context, in *instance) error {
	taken := func(string) bool { return portTaken.MatchString(in.child.Output()) }
	var answer error
	cuts := 0
	err := server.Await(ctx, in.child, taken, func(timed context.Context) error {
		if err := httpstore.Reach(timed, in.addr); err != nil {
			return err
		}
		var cut bool
		answer, cut = w.greet(ctx, in)
		if cut && cuts < mostCuts {
			cuts++
			return answer
		}
		return httpstore.Reach(ctx, in.addr)
	})
	switch {
	case err == nil || errors.Is(ctx.Err(), context.Canceled):
		return cmp.Or(ctx.Err(), answer)
	case errors.Is(err, server.ErrPortTaken):
		return fmt.Errorf("%w (%s)", err, in.saying("it ends at once"))
	case in.child.Ended():
		return unfit("the service does not start: %s", in.saying("it ends at once"))
	case ctx.Err() != nil:
		return unfit("the service has not answered its first request (on %s) when the time of the search is up: %s", in.addr,
			in.saying("it runs"))
	}
	return unfit("the service does not listen on the port of PORT (%s) within %v: %s", in.addr, server.OpenTimeout,
		in.saying("it runs"))
}

// greet asks a new instance once, with nothing held: it connects to Redis and loads its scripts. It reports as well
// whether the connection ended without an answer.
func (w *Engine) greet(ctx context.Context, in *instance) (wrong error, cut bool) {
	timed, cancel := context.WithTimeout(ctx, w.Setup.Patience)
	defer cancel()
	_, err := in.strategy.Take(timed, quota.Request{Subject: w.newSubject(), Policy: &w.Setup.Policy, Units: 1})
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err(), false
	case timed.Err() != nil:
		return unfit("the service does not answer its first request within %v: %s", w.Setup.Patience, in.saying("it runs")),
			false
	}
	wrong = unfit("the service's first answer is no decision: %s; %s", format.OneLine(err.Error()), in.saying("it runs"))
	return wrong, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// complaint is a line by which programs say what is wrong, before or after a trace of calls.
var complaint = regexp.MustCompile(`(?m)^\s*[\w.]*([eE]rror|Exception|panic|fatal error)\b.*`)

// saying is how it is with an instance, and what it printed last.
func (in *instance) saying(how string) string {
	switch {
	case in.postgres != nil && in.postgres.Insists():
		how += ", and wants TLS of PostgreSQL, which is not there: DATABASE_URL says sslmode=disable"
	case in.postgres != nil && in.postgres.Barred() > 0:
		how += ", and sends PostgreSQL another password: let it use DATABASE_URL, or PGUSER and PGPASSWORD"
	case in.redis.Barred() > 0:
		how += ", and sends Redis no password: let it use REDIS_URL, or REDIS_PASSWORD next to REDIS_HOST and REDIS_PORT"
	}
	output := in.child.Output()
	if all := complaint.FindAllString(output, -1); len(all) > 0 {
		return how + ", and says: " + format.OneLine(all[len(all)-1])
	}
	if words := server.LastLines(output, 3); words != "" {
		return how + ", and its last output is: " + words
	}
	return how + ", and has printed nothing"
}

// end kills an instance with its process group.
func (in *instance) end() (err error) {
	if in.child != nil {
		err = in.child.Close()
		in.child = nil
	}
	in.http.CloseIdleConnections()
	in.proxy.Cut()
	return err
}

func unfit(text string, args ...any) error {
	return &engine.UnfitError{Err: fmt.Errorf(text, args...)}
}

// misbehaves is such an error, after which no other is told.
func (w *Engine) misbehaves(text string, args ...any) error {
	w.told = true
	return unfit(text, args...)
}
