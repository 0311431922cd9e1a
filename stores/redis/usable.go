package redis

import (
	"bufio"
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
)

// checkFor is how long the key of a check lives if it cannot be removed.
const checkFor = 10 * time.Second

// commandError is an error of the server, and the command that it refused.
type commandError struct {
	command string
	err     error
}

func (e *commandError) Error() string { return e.command + ": " + e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// usable tries what every run does on a server that was running already: write a key
// with a life, run a script, list keys and remove them. A replica is only read.
func (r *Store) usable(ctx context.Context) error {
	if r.self.Replica {
		return nil
	}
	return tryCommands(ctx, r.admin)
}

// tryCommands sends each kind of command that runs need, and leaves nothing behind.
func tryCommands(ctx context.Context, admin goredis.UniversalClient) error {
	key := "quotabench:check:" + strings.ToLower(crand.Text())
	script := goredis.NewScript("return redis.call('PTTL', KEYS[1])")
	for _, step := range []struct {
		command string
		try     func() goredis.Cmder
	}{
		{"SET", func() goredis.Cmder { return admin.Set(ctx, key, 1, checkFor) }},
		{"EVAL", func() goredis.Cmder { return script.Eval(ctx, admin, []string{key}) }},
		{"EVALSHA", func() goredis.Cmder { return script.EvalSha(ctx, admin, []string{key}) }},
		{"SCAN", func() goredis.Cmder { return admin.Scan(ctx, 0, key, 1) }},
		{"PTTL", func() goredis.Cmder { return admin.PTTL(ctx, key) }},
		{"UNLINK", func() goredis.Cmder { return admin.Unlink(ctx, key) }},
	} {
		if err := step.try().Err(); err != nil {
			removeCheck(ctx, admin, key)
			return &commandError{step.command, err}
		}
	}
	return nil
}

// removeCheck removes the key of a check that has failed or was interrupted. It lives no longer than [checkFor]
// otherwise.
func removeCheck(ctx context.Context, admin goredis.UniversalClient, key string) {
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = admin.Unlink(rest, key).Err() // what is wrong with the server has been found
}

// unusable puts what a server answers that is reached and cannot be used into one line
// with a way out; nil if it is something else.
func unusable(err error, addr, password string) error {
	var c *commandError
	command := "INFO"
	if errors.As(err, &c) {
		command = c.command
		err = c.err
	}
	var said goredis.Error
	if !errors.As(err, &said) {
		return nil
	}
	text := server.Redact(format.OneLine(said.Error()), password)
	for _, x := range []struct{ sign, what string }{
		{"LOADING", "is still loading its data: try again when it is ready"},
		{"OOM ", "is full: its maxmemory is reached, and its maxmemory-policy lets it evict nothing: free memory or raise " +
			"maxmemory"},
		{"READONLY", "is read-only, as a replica is: give the address of its master"},
		{"MISCONF", "refuses writes because it cannot save to its disk: mend that, or set its " +
			"stop-writes-on-bgsave-error to no"},
		{"NOREPLICAS", "refuses writes because too few replicas follow it: see its min-replicas-to-write"},
		{"MASTERDOWN", "is a replica that has lost its master: give the address of a master"},
		{"CLUSTERDOWN", "is a cluster that is down: see CLUSTER INFO"},
		{"BUSY", "is busy with a script: try again, or use SCRIPT KILL"},
		{"max number of clients reached", "has no connection left: close some, or raise its maxclients"},
		{"command not allowed when used memory", "is full: its maxmemory is reached: free memory or raise maxmemory"},
	} {
		if strings.Contains(text, x.sign) {
			return fmt.Errorf("redis at %s %s (%s)", addr, x.what, text)
		}
	}
	switch {
	case strings.Contains(text, "NOPERM") && (strings.Contains(text, "keys") || strings.Contains(text, "key ")):
		return fmt.Errorf("redis at %s lets this user not use the keys of a run: give it ~quotabench:* by ACL SETUSER (%s)",
			addr, text)
	case strings.Contains(text, "NOPERM"):
		return fmt.Errorf("redis at %s lets this user not use %s: give it +%s by ACL SETUSER; "+
			"runs need INFO, SCAN, scripts, and the commands on data (%s)", addr, command, strings.ToLower(command), text)
	case strings.Contains(text, "unknown command"):
		return fmt.Errorf("redis at %s does not know %s: it is renamed or switched off there, and runs need it (%s)", addr,
			command, text)
	}
	return nil
}

// turnedAway is what a server says that closes a connection at once, e.g. for want of
// room: a client that writes first may not get to read it. nil if it says nothing.
func turnedAway(ctx context.Context, opt *goredis.Options, err error) error {
	if errors.As(err, new(goredis.Error)) || opt.TLSConfig != nil || ctx.Err() != nil {
		return nil
	}
	conn, derr := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, cmp.Or(opt.Network, "tcp"), opt.Addr)
	if derr != nil {
		return nil
	}
	defer func() { _ = conn.Close() }() // nothing was written
	if conn.SetReadDeadline(clock.Wall{}.Now().Add(200*time.Millisecond)) != nil {
		return nil
	}
	line, _ := bufio.NewReader(io.LimitReader(conn, maxLine)).ReadString('\n')
	if !strings.HasPrefix(line, "-") {
		return nil
	}
	return unusable(fakeredis.ServerError(strings.TrimSpace(line[1:])), opt.Addr, opt.Password)
}

// Room is how many more clients the server takes. known is false if it does not
// tell.
func (r *Store) Room(ctx context.Context) (left int, setting string, known bool) {
	if r.model != nil || r.dial != nil || r.base.Addr == "" {
		return 0, "", false
	}
	f, err := info(ctx, r.admin)
	if err != nil {
		return 0, "", false
	}
	most, err1 := strconv.Atoi(f["maxclients"])
	now, err2 := strconv.Atoi(f["connected_clients"])
	return most - now, "maxclients", err1 == nil && err2 == nil
}

// refusals begin the errors by which a Redis says that it will not do now what any
// client asks of it, whatever the strategy.
var refusals = []string{
	"OOM", "LOADING", "READONLY", "NOPERM", "NOAUTH", "WRONGPASS", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS",
	"BUSY", "TRYAGAIN",
}

// errorKind is [stores.Driver.ErrorKind].
func errorKind(err error) quota.ErrorKind {
	switch {
	case errors.Is(err, goredis.TxFailedErr): // WATCH saw another's change
		return quota.ErrorContention
	case errors.Is(err, goredis.ErrPoolTimeout):
		return quota.ErrorTimeout
	}
	var said goredis.Error
	if !errors.As(err, &said) {
		return ""
	}
	word, rest, _ := strings.Cut(said.Error(), " ")
	refused := strings.HasPrefix(rest, "max number of clients") || strings.HasPrefix(rest, "unknown command")
	if slices.Contains(refusals, word) || word == "ERR" && refused {
		return quota.ErrorStore
	}
	return ""
}
