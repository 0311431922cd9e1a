package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/stores"
)

// ageEvery is how early or late a key of the embedded server expires at most. Ageing
// costs time in proportion to the keys that expire (2.4 ms for 10,000), so it is
// not done much more often.
const ageEvery = 100 * time.Millisecond

// embedded is a miniredis on a loopback port. Its time of day is the machine's, but
// keys do not age by themselves: a goroutine shortens the time that they have left.
type embedded struct {
	server *miniredis.Miniredis
	stop   context.CancelFunc
	aged   chan struct{}
}

func startEmbedded() (*embedded, error) {
	m := miniredis.NewMiniRedis()
	start := clock.Nano()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start embedded Redis: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &embedded{server: m, stop: cancel, aged: make(chan struct{})}
	go e.age(ctx, start)
	return e, nil
}

// age runs until ctx is done.
func (e *embedded) age(ctx context.Context, last int64) {
	defer close(e.aged)
	for (clock.Wall{}).Sleep(ctx, ageEvery) == nil {
		now := clock.Nano()
		e.server.FastForward(time.Duration(now - last))
		last = now
	}
}

func (e *embedded) close() {
	e.stop()
	<-e.aged
	e.server.Close()
}

func openEmbedded(why string) (*Store, error) {
	e, err := startEmbedded()
	if err != nil {
		return nil, err
	}
	r := &Store{
		base:  goredis.Options{Addr: e.server.Addr()},
		model: e,
		info: stores.Info{
			Kind:       stores.KindEmbedded,
			Detail:     "miniredis in this process (" + why + "): decisions are right, speed is not comparable with a server's",
			Durability: "none: memory of this process",
		},
	}
	if err := r.connect(context.Background()); err != nil {
		e.close()
		return nil, fmt.Errorf("start embedded Redis: %w", err)
	}
	return r, nil
}
