package redis

import (
	"cmp"
	"context"
	"net"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

func openContainer(ctx context.Context, e server.Engine, o stores.Options) (*Store, error) {
	password := passwordOf(o)
	const path = "/etc/quotabench.conf"
	spec := server.ContainerSpec{
		Image: cmp.Or(o.Image, defaultImage),
		Port:  6379,
		Dir:   o.Dir, NoPull: o.NoPull,
		Files: map[string]string{path: config(password)},
		Command: func(listen string, port int) []string {
			return append([]string{"redis-server", path}, arguments(listen, port, o)...)
		},
	}
	var r *Store
	err := e.Run(ctx, spec, func(b server.Container) error {
		r = newStore(b, stores.Info{Kind: stores.KindContainer, Detail: e.Detail(spec.Image)})
		r.base = goredis.Options{Addr: net.JoinHostPort(b.Host(), strconv.Itoa(b.Port())), Password: password}
		// A server without a password takes every one, so it has to name ours.
		return r.await(ctx, func(ctx context.Context) (bool, error) {
			set, err := r.admin.ConfigGet(ctx, "requirepass").Result()
			return set["requirepass"] == password, err
		})
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}
