//go:build linux

package storefaults

import (
	"context"
	"errors"
	"io"
	"log"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quotabench/quotabench/full/stores/etcd"
	"github.com/quotabench/quotabench/full/stores/nats"
	"github.com/quotabench/quotabench/full/stores/zookeeper"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"

	_ "github.com/quotabench/quotabench/full/strategies/etcd"
	_ "github.com/quotabench/quotabench/full/strategies/jetstream"
	_ "github.com/quotabench/quotabench/full/strategies/zookeeper"
)

// startFurther starts a server of another kind for this test, or skips it.
func startFurther[S stores.Store](t *testing.T, name string, settings map[string]string,
	open func(context.Context, string, stores.Options) (S, error)) S {
	t.Helper()
	return storetest.Shared(t, name, func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(open)(ctx, "process", stores.Options{Settings: settings})
	}).(S)
}

// settled waits until a server that was started again takes requests.
func settled(ready func(ctx context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		for {
			err := ready(ctx)
			if err == nil {
				return nil
			}
			if (clock.Wall{}).Sleep(ctx, 10*time.Millisecond) != nil {
				return err
			}
		}
	}
}

// common is how the faults are made that every kind of server can have. lose removes
// what runs keep.
func (v *victim) common(s stores.Breakable, own *process, restartedEmpty string,
	lose func(context.Context) error) map[string]act {
	back := settled(func(ctx context.Context) error {
		_, err := v.left(ctx)
		return err
	})
	again := func(empty bool) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := own.restart(ctx, empty); err != nil {
				return err
			}
			return back(ctx)
		}
	}
	return map[string]act{
		"data of runs removed": {inflict: lose},
		"stopped for a while":  {inflict: suffers(s, "stopped", halted)},
		"killed": {inflict: func(context.Context) error {
			own.kill()
			return nil
		}, mend: inTurn(own.start, back)},
		"restarted with its data": {inflict: again(false)},
		restartedEmpty:            {inflict: again(true)},
	}
}

func etcdVictim(t *testing.T) *victim {
	s := startFurther(t, "etcd", map[string]string{"heartbeat-interval": "10", "election-timeout": "100",
		"unsafe-no-fsync": "true"}, etcd.Open)
	own := processOf(t, s.PID(), s.Info().Addr)
	// Without logins, which a server that comes back empty has not.
	if _, err := s.Admin().AuthDisable(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := "http://" + s.Info().Addr
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, DialTimeout: 5 * time.Second,
		Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	v := &victim{}
	v.open = func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(etcd.Open)(ctx, at, stores.Options{})
	}
	v.left = func(ctx context.Context) (left []string, err error) {
		r, err := client.Get(ctx, "quotabench", clientv3.WithPrefix())
		if err != nil {
			return nil, err
		}
		for _, kv := range r.Kvs {
			left = append(left, string(kv.Key))
		}
		return left, nil
	}
	v.acts = v.common(s, own, "restarted empty", func(ctx context.Context) error {
		_, err := client.Delete(ctx, "quotabench", clientv3.WithPrefix())
		return err
	})
	return v
}

func natsVictim(t *testing.T) *victim {
	s := startFurther(t, "nats", nil, nats.Open)
	own := processOf(t, s.PID(), s.Info().Addr)
	opt := s.JetStream().Conn().Opts
	conn, err := natsgo.Connect("nats://"+
		s.Info().Addr, natsgo.UserInfo(opt.User, opt.Password), natsgo.MaxReconnects(-1),
		natsgo.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	at := (&url.URL{Scheme: "nats", User: url.UserPassword(opt.User, opt.Password), Host: s.Info().Addr}).String()
	v := &victim{}
	v.open = func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(nats.Open)(ctx, at, stores.Options{})
	}
	v.left = func(ctx context.Context) (left []string, err error) {
		names := js.StreamNames(ctx)
		for name := range names.Name() {
			left = append(left, name)
		}
		return left, names.Err()
	}
	v.acts = v.common(s, own, "restarted empty", func(ctx context.Context) error {
		names, err := v.left(ctx)
		for _, name := range names {
			if err == nil {
				err = js.DeleteStream(ctx, name)
			}
		}
		return err
	})
	return v
}

func zookeeperVictim(t *testing.T) *victim {
	s := startFurther(t, "zookeeper", map[string]string{"forceSync": "no"}, zookeeper.Open)
	own := processOf(t, s.PID(), s.Info().Addr)
	// A client of its own each time: one does not come back to a server that is empty.
	with := func(ctx context.Context, do func(conn *zk.Conn, names []string) error) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		conn, events, err := zk.Connect([]string{s.Info().Addr}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
		if err != nil {
			return err
		}
		defer conn.Close()
		for conn.State() != zk.StateHasSession {
			select {
			case <-events:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		names, _, err := conn.Children("/")
		if err != nil {
			return err
		}
		return do(conn, slices.DeleteFunc(names, func(name string) bool { return name == "zookeeper" }))
	}
	v := &victim{}
	v.open = func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(zookeeper.Open)(ctx, "zk://"+s.Info().Addr, stores.Options{})
	}
	v.left = func(ctx context.Context) (left []string, err error) {
		err = with(ctx, func(_ *zk.Conn, names []string) error {
			left = names
			return nil
		})
		return left, err
	}
	v.acts = v.common(s, own, "restarted empty, and rejecting clients that know of more", func(ctx context.Context) error {
		return with(ctx, func(conn *zk.Conn, names []string) error {
			for _, name := range names {
				if err := removeNode(conn, "/"+name); err != nil {
					return err
				}
			}
			return nil
		})
	})
	delete(v.acts, "restarted with its data") // which takes it longer than a test can wait
	return v
}

// removeNode removes a node with all below it at once, also if some are made
// meanwhile.
func removeNode(conn *zk.Conn, path string) error {
	for {
		children, _, err := conn.Children(path)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		var ops []any
		for _, c := range children {
			ops = append(ops, &zk.DeleteRequest{Path: path + "/" + c, Version: -1})
		}
		_, err = conn.Multi(append(ops, &zk.DeleteRequest{Path: path, Version: -1})...)
		if !errors.Is(err, zk.ErrNotEmpty) && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}
