package all_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/all"
	"github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/stores/redis"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
	}
	if os.Getenv(askerEnv) != "" {
		ask()
	}
	storetest.Main(m)
}

// victimEnv makes the test binary open servers in the folder it names, and wait
// to be killed. victimKindEnv is their kind.
const (
	victimEnv     = "QUOTABENCH_STORES_VICTIM"
	victimKindEnv = "QUOTABENCH_STORES_VICTIM_KIND"
)

type victimReport struct {
	PID             int // its own
	Redis, Postgres int
	Addr            string
	Err             string
}

// kept holds the victim's stores: an unreachable one would lose its lock.
var kept struct {
	redis    *redis.Store
	postgres *postgres.Store
}

func victim() {
	ctx := context.Background()
	o := stores.Options{Dir: os.Getenv(victimEnv), Image: os.Getenv(storetest.RedisImageEnv), NoPull: true}
	rep := victimReport{PID: os.Getpid()}
	var err error
	kept.redis, err = redis.Open(ctx, os.Getenv(victimKindEnv), o)
	if err == nil {
		rep.Redis = kept.redis.PID()
		rep.Addr = kept.redis.Info().Addr
		o.Image = os.Getenv(storetest.PostgresImageEnv)
		kept.postgres, err = postgres.Open(ctx, os.Getenv(victimKindEnv), o)
		if err == nil {
			rep.Postgres = kept.postgres.PID()
		}
	}
	if err != nil {
		rep.Err = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(rep); err != nil {
		os.Exit(1)
	}
	select {}
}

// askerEnv makes the test binary ask for the container engine. The answer is
// remembered for the life of a process, so it takes another one.
const askerEnv = "QUOTABENCH_STORES_ASKER"

type answer struct {
	Err  string
	Took time.Duration
	Auto stores.Kind // of Redis if neither process nor container will do
}

func ask() {
	ctx := context.Background()
	var a answer
	start := clock.Nano()
	_, err := redis.Open(ctx, "container", stores.Options{})
	a.Took = time.Duration(clock.Nano() - start)
	if err != nil {
		a.Err = err.Error()
	}
	if r, err := redis.Open(ctx, "auto", stores.Options{}); err == nil {
		a.Auto = r.Info().Kind
		_ = r.Close()
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}
