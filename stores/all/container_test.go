//go:build unix

package all_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/stores/redis"
)

func containerOptions(t *testing.T, imageEnv string) stores.Options {
	return stores.Options{Dir: t.TempDir(), Image: os.Getenv(imageEnv), NoPull: true}
}

func containerEngine(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.FromEnv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// containersOf counts the containers that belong to a process.
func containersOf(t *testing.T, pid int) (n int) {
	t.Helper()
	all, err := containerEngine(t).ContainerList(context.Background(), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Items {
		if owner, _, ok := server.ParseMark(c.Labels["quotabench.owner"]); ok && owner == pid {
			n++
		}
	}
	return n
}

// volumesOf are the volumes of the containers of a process.
func volumesOf(t *testing.T, pid int) (names []string) {
	t.Helper()
	all, err := containerEngine(t).ContainerList(context.Background(), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Items {
		if owner, _, ok := server.ParseMark(c.Labels["quotabench.owner"]); !ok || owner != pid {
			continue
		}
		for _, m := range c.Mounts {
			if m.Name != "" {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// left counts those of some volumes that the container engine still has.
func left(names []string) func(t *testing.T) int {
	return func(t *testing.T) (n int) {
		t.Helper()
		all, err := containerEngine(t).VolumeList(context.Background(), client.VolumeListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all.Items {
			if slices.Contains(names, v.Name) {
				n++
			}
		}
		return n
	}
}

// hideServers puts programs in front of the installed servers that end at once, so
// that auto has to do without.
func hideServers(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	openUp(t, dir)
	for _, name := range []string{"redis-server", "initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho this is no server\nexit 1\n"),
			0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

func TestContainersAreDescribed(t *testing.T) {
	testenv.Long(t)
	r := storetest.ContainerRedis(t)
	p := storetest.ContainerPostgres(t)
	ctx := context.Background()
	for _, i := range []stores.Info{r.Info(), p.Info()} {
		if i.Kind != stores.KindContainer || i.Version == "" || !strings.Contains(i.Detail, "container of ") || i.Addr == "" {
			t.Errorf("%+v", i)
		}
	}
	if r.Info().Durability != "no snapshots, no append-only file" ||
		p.Info().Durability != "fsync off, synchronous_commit on" {
		t.Errorf("durability %q and %q, want those of the processes of tests", r.Info().Durability, p.Info().Durability)
	}
	if !r.Owned() || !p.Owned() || r.PID() != 0 || p.PID() != 0 {
		t.Errorf("owned %v %v, pid %d %d", r.Owned(), p.Owned(), r.PID(), p.PID())
	}
	if st, err := r.Stats(ctx); err != nil || len(st.Incarnation) != 40 || st.CPU <= 0 {
		t.Errorf("%+v %v", st, err)
	}
	if st, err := p.Stats(ctx); err != nil || st.Incarnation == "" {
		t.Errorf("%+v %v", st, err)
	}
}

func TestCloseRemovesContainers(t *testing.T) {
	testenv.Long(t)
	storetest.ContainerRedis(t)
	storetest.ContainerPostgres(t)
	ctx := context.Background()
	for _, kind := range []struct{ name, spec, detail string }{
		// What auto takes if no server can be started.
		{"auto", "auto", "container of"},
		{"published port", "container", "published port"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			if kind.spec == "auto" {
				t.Setenv("PATH", hideServers(t))
			} else {
				server.PublishPorts = true
				defer func() { server.PublishPorts = false }()
			}
			before := containersOf(t, os.Getpid())
			volumesBefore := volumesOf(t, os.Getpid())
			or := containerOptions(t, storetest.RedisImageEnv)
			op := containerOptions(t, storetest.PostgresImageEnv)
			r, err := redis.Open(ctx, kind.spec, or)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			p, err := postgres.Open(ctx, kind.spec, op)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close() }()
			for _, i := range []stores.Info{r.Info(), p.Info()} {
				if i.Kind != stores.KindContainer || !strings.Contains(i.Detail, kind.detail) ||
					!strings.HasPrefix(i.Addr, "127.0.0.1:") {
					t.Errorf("%+v", i)
				}
			}
			if err := r.Admin().Set(ctx, "k", 1, 0).Err(); err != nil {
				t.Error(err)
			}
			if n := containersOf(t, os.Getpid()); n != before+2 {
				t.Errorf("%d containers, want 2 more than %d", n, before)
			}
			ours := slices.DeleteFunc(volumesOf(t, os.Getpid()), func(name string) bool {
				return slices.Contains(volumesBefore, name)
			})
			if left(ours)(t) == 0 {
				t.Error("no container has a volume")
			}
			for range 2 { // the second time it does nothing
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
			if n := containersOf(t, os.Getpid()); n != before {
				t.Errorf("%d containers, want %d as before", n, before)
			}
			requireNone(t, "volumes", left(ours))
			if left := append(privateDirs(t, or.Dir), privateDirs(t, op.Dir)...); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// requireNone waits until the engine has none of what count counts.
func requireNone(t *testing.T, what string, count func(*testing.T) int) {
	t.Helper()
	for i := 0; ; i++ {
		n := count(t)
		if n == 0 {
			return
		}
		if i == 450 {
			t.Fatalf("%d %s are left after 45 s", n, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestContainersOfTheKilled kills the owner of containers and lets the next Open
// remove them.
func TestContainersOfTheKilled(t *testing.T) {
	testenv.Long(t)
	storetest.ContainerRedis(t)
	storetest.ContainerPostgres(t)
	ctx := context.Background()
	for name, next := range map[string]func(t *testing.T, victims string){
		"any kind, by the directory": func(t *testing.T, victims string) {
			r, err := redis.Open(ctx, "embedded", stores.Options{Dir: victims})
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
		},
		"a container, without the directory": func(t *testing.T, _ string) {
			r, err := redis.Open(ctx, "container", containerOptions(t, storetest.RedisImageEnv))
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			cmd, rep := startVictim(t, "container", parent)
			if n := containersOf(t, rep.PID); n != 2 {
				t.Fatalf("%d containers, want 2", n)
			}
			ours := volumesOf(t, rep.PID)
			if left(ours)(t) == 0 {
				t.Error("no container has a volume")
			}
			next(t, parent)
			if n := containersOf(t, rep.PID); n != 2 {
				t.Fatalf("%d containers of a living process are left of 2", n)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // "signal: killed"
			next(t, parent)
			// An Open of another package's test may be about to remove one, which the
			// engine then refuses to this one.
			requireNone(t, "containers", func(t *testing.T) int { return containersOf(t, rep.PID) })
			requireNone(t, "volumes", left(ours))
		})
	}
}

func TestImageThatIsMissing(t *testing.T) {
	testenv.Long(t)
	storetest.ContainerRedis(t)
	ctx := context.Background()
	for _, noPull := range []bool{true, false} {
		parent := t.TempDir()
		const image = "localhost:1/quotabench/no-such-image:1"
		o := stores.Options{Dir: parent, NoPull: noPull}
		if r, err := redis.Open(ctx, "container:durable,image="+image, o); err == nil {
			_ = r.Close()
			t.Error("redis: opened")
		} else {
			storecheck.Error(t, err, image, "process, embedded or a URL")
		}
		if p, err := postgres.Open(ctx, "container:image="+image, o); err == nil {
			_ = p.Close()
			t.Error("postgres: opened")
		} else {
			storecheck.Error(t, err, image, "process, embedded or a URL")
		}
		if left := privateDirs(t, parent); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestContainerThatEndsAtOnce gives the server a setting that it refuses.
func TestContainerThatEndsAtOnce(t *testing.T) {
	testenv.Long(t)
	storetest.ContainerRedis(t)
	before := containersOf(t, os.Getpid())
	o := containerOptions(t, storetest.RedisImageEnv)
	o.Settings = map[string]string{"no-such-setting": "1"}
	r, err := redis.Open(context.Background(), "container", o)
	if err == nil {
		_ = r.Close()
		t.Fatal("opened")
	}
	storecheck.Error(t, err, "ended at once", "no-such-setting")
	if n := containersOf(t, os.Getpid()); n != before {
		t.Errorf("%d containers, want %d as before", n, before)
	}
}

// TestContainerThatIsNotWantedAnyMore takes the wish back at many moments.
func TestContainerThatIsNotWantedAnyMore(t *testing.T) {
	testenv.Long(t)
	storetest.ContainerRedis(t)
	before := containersOf(t, os.Getpid())
	for after := 4 * time.Millisecond; after < 300*time.Millisecond; after *= 2 {
		o := containerOptions(t, storetest.RedisImageEnv)
		ctx, cancel := context.WithTimeout(context.Background(), after)
		r, err := redis.Open(ctx, "container", o)
		if err == nil {
			err = r.Close()
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("after %v, more than one line: %v", after, err)
		}
		cancel()
		if n := containersOf(t, os.Getpid()); n != before {
			t.Fatalf("taken back after %v (%v): %d containers, want %d as before", after, err, n, before)
		}
		if left := privateDirs(t, o.Dir); len(left) != 0 {
			t.Fatalf("taken back after %v: left %v", after, left)
		}
	}
}

func TestWithoutAnEngine(t *testing.T) {
	testenv.Long(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() }) // after the parallel tests
	path := hideServers(t)
	for _, tc := range []struct{ name, host string }{
		{"no socket", "unix:///nowhere/docker.sock"},
		{"closed port", "tcp://127.0.0.1:1"},
		{"no answer", "tcp://" + mute.Addr().String()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ask := func() (a answer) {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, os.Args[0])
				cmd.Env = append(os.Environ(), askerEnv+"=1", "DOCKER_HOST="+tc.host, "HOME="+t.TempDir(), "PATH="+path)
				cmd.Stderr = os.Stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(out, &a); err != nil {
					t.Fatal(err)
				}
				storecheck.Error(t, errors.New(a.Err), "no container engine answers", "process, embedded or a URL")
				if a.Auto != stores.KindEmbedded {
					t.Errorf("auto took %s", a.Auto)
				}
				return a
			}
			// A second for each of two questions, and what the machine adds. A busy one may
			// add much: the quickest of several attempts counts.
			const limit, attempts = 5 * time.Second, 5
			took := ask().Took
			for n := 1; took > limit && n < attempts; n++ {
				t.Logf("attempt %d took %v", n, took)
				took = min(took, ask().Took)
			}
			if took > limit {
				t.Errorf("took %v, want at most %v", took, limit)
			}
		})
	}
}
