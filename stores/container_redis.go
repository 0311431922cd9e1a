package stores

import (
	"cmp"
	"context"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

func openRedisContainer(ctx context.Context, e *engine, o Options) (*Redis, error) {
	password := redisPassword(o)
	const config = "/etc/quotabench.conf"
	spec := boxSpec{
		image: cmp.Or(o.Image, DefaultRedisImage),
		port:  6379,
		files: map[string]string{config: redisConfig(password)},
		command: func(listen string, port int) []string {
			return append([]string{"redis-server", config}, redisSettings(listen, port, o)...)
		},
	}
	var r *Redis
	err := e.runBox(ctx, o, spec, func(b *box) error {
		r = &Redis{
			base: redis.Options{Addr: net.JoinHostPort(b.host, strconv.Itoa(b.port)), Password: password},
			own:  b,
			info: Info{Kind: KindContainer, Detail: e.detail(spec.image)},
		}
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
