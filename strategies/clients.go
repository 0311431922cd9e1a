package strategies

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// Redis is the client of the store "redis" among those of env; nil if it has none.
//
// It is a function, and no field of [Env], for the time that builds take: a package in whose types a client of
// go-redis is found compiles some 1,700 functions of it again, in about 2 s.
func Redis(env Env) redis.UniversalClient {
	c, _ := env.Clients[string(NeedRedis)].(redis.UniversalClient)
	return c
}

// Postgres is the pool of connections of the store "postgres" among those of env; nil if it has none.
func Postgres(env Env) *pgxpool.Pool {
	c, _ := env.Clients[string(NeedPostgres)].(*pgxpool.Pool)
	return c
}
