package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/stores"
)

// ageEvery is how often keys of the embedded server age if no command comes.
const ageEvery = 100 * time.Millisecond

// agingShare is the most that ageing takes of the time, as one part in so many. It
// costs time in proportion to the keys that expire (2.4 ms for 10,000), and a key
// expires early or late by at most as long as it is put off.
const agingShare = 10

// embedded is a miniredis on a loopback port. Its time of day is the machine's, but
// keys do not age by themselves: the time that they have left is shortened before each
// command, so that one that is about to get a deadline is not aged by what passed
// before.
type embedded struct {
	server  *miniredis.Miniredis
	scripts *fakeredis.Scripts
	stop    context.CancelFunc
	aged    chan struct{}
	nano    func() int64 // the time, in nanoseconds

	mu         sync.Mutex
	last, next int64         // when keys aged last, and may again
	ahead      time.Duration // how far its time is ahead of the machine's
}

func startEmbedded() (*embedded, error) { return startEmbeddedAt(clock.Nano) }

// startEmbeddedAt is startEmbedded with keys that age by another clock.
func startEmbeddedAt(nano func() int64) (*embedded, error) {
	m := miniredis.NewMiniRedis()
	e := &embedded{server: m, aged: make(chan struct{}), nano: nano, last: nano()}
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start embedded Redis: %w", err)
	}
	e.scripts = fakeredis.NewScripts(m)
	m.Server().SetPreHook(func(peer *server.Peer, cmd string, args ...string) bool {
		e.ageIfFree()
		return e.scripts.Take(peer, cmd, args...)
	})
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	go e.run(ctx)
	return e, nil
}

// run ages keys until ctx is done.
func (e *embedded) run(ctx context.Context) {
	defer close(e.aged)
	for (clock.Wall{}).Sleep(ctx, ageEvery) == nil {
		e.age()
	}
}

// ageIfFree is age, but not while the server is at work on a command: a command of a
// script comes while its script holds the server's lock, and the keys aged before it.
func (e *embedded) ageIfFree() {
	if !e.mu.TryLock() {
		return
	}
	defer e.mu.Unlock()
	if e.server.TryLock() {
		e.server.Unlock()
		e.ageLocked()
	}
}

// age brings all keys up to the present, if that is due.
func (e *embedded) age() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ageLocked()
}

func (e *embedded) ageLocked() {
	if e.ahead > 0 {
		e.server.SetTime(clock.Wall{}.Now().Add(e.ahead))
	}
	now := e.nano()
	if now < e.next {
		return
	}
	e.server.FastForward(time.Duration(now - e.last))
	e.last, e.next = now, now+(agingShare-1)*(e.nano()-now)
}

// advance moves its time ahead.
func (e *embedded) advance(duration time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ahead += duration
	e.server.FastForward(duration)
	e.ageLocked()
}

// Advance moves the time of an embedded server ahead of the machine's, by which its keys age. It panics for a server,
// whose time cannot be moved.
func (s *Store) Advance(duration time.Duration) { s.model.advance(duration) }

func (e *embedded) close() {
	e.stop()
	<-e.aged
	e.server.Close()
	e.scripts.Close()
}

func openEmbedded(why string) (*Store, error) {
	embedded, err := startEmbedded()
	if err != nil {
		return nil, err
	}
	store := newStore(nil, stores.Info{
		Kind: stores.KindEmbedded,
		Detail: "miniredis in this process (" + why + "): decisions are right, speed is not comparable with a server's; " +
			"scripts in transactions or with libraries such as cjson are ten times as slow as others",
		Durability: "none: memory of this process",
	})
	store.base = goredis.Options{Addr: embedded.server.Addr()}
	store.model = embedded
	if err := store.connect(context.Background()); err != nil {
		embedded.close()
		return nil, fmt.Errorf("start embedded Redis: %w", err)
	}
	return store, nil
}
