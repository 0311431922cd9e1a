package redis_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// refused opens a URL, which must fail in one line that says all of want.
func refused(t *testing.T, url string, want ...string) {
	t.Helper()
	r, err := redis.Open(t.Context(), url, stores.Options{})
	if err == nil {
		_ = r.Close()
		t.Fatalf("opened, want %q", want)
	}
	storecheck.Error(t, err, want...)
	if strings.Contains(err.Error(), "refuses the login") {
		t.Errorf("the login was right: %v", err)
	}
}

// A server that cannot serve a run is refused at the start, with what it lacks.
func TestUnusableServersAreRefused(t *testing.T) {
	storetest.Redis(t) // skips if there is none
	r, err := redis.Open(t.Context(), "process", stores.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	ctx := context.Background()
	a := r.Admin()
	do := func(args ...any) {
		t.Helper()
		if err := a.Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	url := "redis://:" + r.Password() + "@" + r.Info().Addr
	good, err := redis.Open(ctx, url, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if left, setting, known := good.Room(ctx); !known || setting != "maxclients" || left < 1 {
		t.Errorf("room for %d (%s), known %v", left, setting, known)
	}
	if n, _, err := good.KeysUnder(ctx, "quotabench:"); err != nil || n != 0 {
		t.Errorf("%d keys are left (%v)", n, err)
	}
	if err := good.Close(); err != nil {
		t.Error(err)
	}
	as := func(rights ...any) string {
		do(append([]any{"ACL", "SETUSER", "bob", "reset", "on", ">s3cr3t", "allkeys", "+@all"}, rights...)...)
		return "redis://bob:s3cr3t@" + r.Info().Addr
	}
	refused(t, as("-info"), "not use INFO: give it +info")
	refused(t, as("-eval"), "not use EVAL: give it +eval")
	refused(t, as("-scan"), "not use SCAN: give it +scan")
	refused(t, as("-unlink"), "not use UNLINK: give it +unlink")
	refused(t, as("-set"), "not use SET: give it +set")
	refused(t, as("resetkeys", "~other:*"), "~quotabench:*")
	do("FLUSHALL") // what could not be removed lives for a moment

	do("CONFIG", "SET", "maxmemory", 1)
	refused(t, url, "is full", "maxmemory")
	do("CONFIG", "SET", "maxmemory", 0)
	do("CONFIG", "SET", "min-replicas-to-write", 1)
	refused(t, url, "too few replicas", "min-replicas-to-write")
	do("CONFIG", "SET", "min-replicas-to-write", 0)
	do("CONFIG", "SET", "maxclients", 1)
	refused(t, url, "no connection left", "maxclients")
	do("CONFIG", "SET", "maxclients", 1000)

	do("REPLICAOF", "127.0.0.1", 1)
	_, err = stores.OpenSet(ctx, []stores.Spec{{Name: "redis", From: url}})
	if err == nil {
		t.Fatal("a replica was taken for a server that can be written to")
	}
	storecheck.Error(t, err, "leads to a replica at "+r.Info().Addr, "its primary")
	set, err := stores.OpenSet(ctx, []stores.Spec{{Name: "redis.replica", From: url}})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}

// answering is a server that answers every command with the same line.
func answering(t *testing.T, line string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for in := bufio.NewScanner(c); in.Scan(); {
					if strings.HasPrefix(in.Text(), "*") { // a command begins
						if _, err := fmt.Fprintf(c, "%s\r\n", line); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestServersThatAreNotReady(t *testing.T) {
	for line, want := range map[string]string{
		"-LOADING Redis is loading the dataset in memory":                         "is still loading its data",
		"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is no": "has lost its master",
		"-BUSY Redis is busy running a script":                                    "is busy with a script",
		"-ERR unknown command":                                                    "does not know INFO",
	} {
		refused(t, "redis://"+answering(t, line), want)
	}
}
