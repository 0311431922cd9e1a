package prove_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/prove"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// connections are ways of using a client besides sending plain commands, each with the words by which it is refused;
// none if it is supported.
var connections = map[string]string{
	"Conn": "", "Watch": "", "Publish": "",
	"Subscribe": "or to subscribe", "PSubscribe": "or to subscribe", "a subscription": "or to subscribe",
	"Do subscribe": "subscribe, which waits", "BLPop": "blpop, which waits", "XRead": "xread, which waits",
	"WithTimeout": "by its WithTimeout", "WithTimeout later": "by its WithTimeout",
	"a client of its own": "by a client of its own",
}

// connecting counts rightly, whatever way it goes.
type connecting struct {
	rdb    *redis.Client
	policy *quota.Policy
	now    func() time.Time
	way    string
	close  func() error
}

// connectionsPrefix begins the names of plants that are such limiters.
const connectionsPrefix, ofForeign = "by ", "foreign "

func connectingLimiter(way string) *strategies.Meta {
	way, foreign := strings.CutPrefix(way, ofForeign)
	m := strategies.FromFunc("connecting", []quota.Kind{quota.Fixed},
		func(ctx context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			c := &connecting{strategies.Redis(env).(*redis.Client), p, env.Clock.Now, way, func() error { return nil }}
			if foreign {
				c.now = time.Now //nolint:forbidigo // what is tested is code that does this
			}
			switch way {
			case "a subscription":
				sub := c.rdb.Subscribe(ctx, "news")
				c.close = sub.Close
				go func(messages <-chan *redis.Message) {
					for range messages { // which end with the subscription
					}
				}(sub.Channel())
			case "a client of its own":
				own := redis.NewClient(c.rdb.Options())
				c.rdb = own
				c.close = own.Close
			}
			return c, nil
		})
	m.Foreign = foreign
	return &m
}

func (c *connecting) Close() error { return c.close() }

func (c *connecting) Allow(ctx context.Context, subject string) (ok bool, err error) {
	key := subject + c.now().UTC().Truncate(c.policy.Window.Length).Format(time.RFC3339Nano)
	switch c.way {
	case "Conn":
		conn := c.rdb.Conn()
		ok, err = c.count(ctx, conn, key)
		return ok, errors.Join(err, conn.Close())
	case "Watch":
		err = c.rdb.Watch(ctx, func(tx *redis.Tx) error {
			n, err := tx.Get(ctx, key).Int64()
			ok = n < c.policy.Limit
			if err != nil && !errors.Is(err, redis.Nil) || !ok {
				return err
			}
			_, err = c.count(ctx, tx, key)
			return err
		}, key)
		if errors.Is(err, redis.TxFailedErr) {
			return c.Allow(ctx, subject)
		}
		return ok && err == nil, err
	case "WithTimeout later":
		if err := c.rdb.Do(ctx, "hkeys", key).Err(); err != nil {
			return false, err
		}
		fallthrough // over a connection that the client has
	case "WithTimeout":
		return c.count(ctx, c.rdb.WithTimeout(time.Second), key)
	case "Publish":
		err = c.rdb.Publish(ctx, "news", 1).Err()
	case "Subscribe":
		err = c.rdb.Subscribe(ctx, "news").Close()
	case "PSubscribe":
		err = c.rdb.PSubscribe(ctx, "news").Close()
	case "Do subscribe":
		_ = c.rdb.Do(ctx, "SUBSCRIBE", "news").Err() // what it answers does not matter
	case "BLPop":
		_ = c.rdb.BLPop(ctx, time.Second, "queue").Err()
	case "XRead":
		_ = c.rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{"log", "0"}, Block: time.Second}).Err()
	}
	if err != nil {
		return false, err
	}
	return c.count(ctx, c.rdb, key)
}

func (c *connecting) count(ctx context.Context, rdb redis.Cmdable, key string) (bool, error) {
	p := rdb.TxPipeline()
	n := p.Incr(ctx, key)
	p.PExpire(ctx, key, c.policy.Window.Length)
	_, err := p.Exec(ctx)
	return err == nil && n.Val() <= c.policy.Limit, err
}

// Each way is supported or refused by its name, by a search, a simulation and a proof, of what goes by its own clock,
// too.
func TestConnections(t *testing.T) {
	var ways []string
	for way, refused := range connections {
		if testenv.Race && refused == "" {
			continue // its month is long there, and is that of any other limiter
		}
		for _, kind := range testenv.Pick([]string{""}, []string{"", ofForeign}) {
			ways = append(ways, connectionsPrefix+kind+way)
		}
	}
	out := proved(t, plantedVariable+"="+strings.Join(ways, ","))
	logged := map[string]string{}
	test := ""
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "===" {
			test = words[2]
		}
		logged[test] += line
	}
	for _, way := range ways {
		way = strings.TrimPrefix(way, connectionsPrefix)
		name := strings.ReplaceAll(connectionsPrefix+way, " ", "_")
		refused := connections[strings.TrimPrefix(way, ofForeign)]
		said := func(by string, claim bool, text string) {
			if claim != (refused == "") || !strings.Contains(text, refused) {
				t.Errorf("%s of %s: claim %t, %s", by, way, claim, text)
			}
		}
		sel, err := connectingLimiter(way).Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Run(t.Context(), sel, explore.Config{Bounds: explore.Bounds{MaxStates: 1_000}})
		said("a search", r != nil && r.Claim != "" && len(r.Findings) == 0, fmt.Sprint(err))
		s, err := simulatedDay(t, sel)
		said("a simulation", err == nil && s.Leak.Units == 0 && s.Admitted > 0, fmt.Sprint(err, s.Audit))
		for _, stage := range []prove.Stage{prove.Exploration, prove.Simulation} {
			test := "TestPlanted/" + name + "/" + string(stage)
			passed := strings.Contains(out, "--- PASS: "+test+" (")
			if !passed && !strings.Contains(out, "--- FAIL: "+test+" (") {
				t.Errorf("%s of %s was not tried", stage, way)
			}
			said(string(stage), passed, logged[test])
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func simulatedDay(t *testing.T, sel strategies.Selection) (*results.Run, error) {
	t.Helper()
	w, err := workloads.Lookup("steady")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(t.Context(), sim.Config{Plan: harness.Plan{
		Policy: hourly(t),
		Traffic: harness.Traffic{
			Workload: w,
			Load:     harness.OpenAt(60. / 3600), Duration: 24 * time.Hour,
			Stream: workloads.Params{Options: quota.Options{"subjects": "1"}},
		},
		Strategies: []strategies.Selection{sel}, Seed: 1, Instances: 2,
	}})
	if r == nil {
		t.Fatal(err)
	}
	return &r.Runs[0], err
}
