package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// heard is an event that says when somebody waits for it.
type heard struct {
	quota.Event
	*bed
}

func (h heard) Wait(ctx context.Context) error {
	once(&h.waits)
	err := h.Event.Wait(ctx)
	if h.wakes != nil {
		<-h.wakes
	}
	return err
}

// NewEvent implements [quota.Clock].
func (b *bed) NewEvent() quota.Event { return heard{b.Wall.NewEvent(), b} }

// queue has a caller wait for a block, and returns what becomes of it.
func (b *bed) queue(ctx context.Context, s *lease, p *quota.Policy) <-chan error {
	ended := make(chan error, 1)
	b.queueTo(ctx, s, p, ended)
	return ended
}

func (b *bed) queueTo(ctx context.Context, s *lease, p *quota.Policy, ended chan<- error) {
	waits := make(chan struct{})
	b.waits = func() { close(waits) }
	go func() {
		d, err := s.Take(ctx, quota.Request{Subject: "s", Policy: p, Units: 1})
		if err == nil && !d.Admitted {
			err = errors.New("rejected")
		}
		ended <- err
	}()
	<-waits
}

// TestServesWhoWaits: a block has room for those who waited for it before it has any for those who come
// later, and none for who has given up.
func TestServesWhoWaits(t *testing.T) {
	for gaveUp, commands := range map[bool]int64{false: 2, true: 1} {
		b := newBed(t)
		b.wakes = make(chan struct{}, 2)
		s := b.open("block=3", 1)
		p := limitOf(100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var ended []<-chan error
		b.done = func() {
			ended = append(ended, b.queue(t.Context(), s, p), b.queue(ctx, s, p))
			if gaveUp {
				cancel()
				b.wakes <- struct{}{}
				if err := <-ended[1]; !errors.Is(err, context.Canceled) {
					t.Errorf("a caller that gave up got %v", err)
				}
				ended = ended[:1]
			}
		}
		b.takes(s, p, 2)
		b.want(fmt.Sprintf("commands for the second request, after another gave up: %t", gaveUp), int64(b.commands), commands)
		for range ended { // whichever of them takes it
			b.wakes <- struct{}{}
		}
		for _, e := range ended {
			if err := <-e; err != nil {
				t.Error(err)
			}
		}
		b.want("commands", int64(b.commands), commands)
		b.want("used", b.used(), 3*commands)
	}
}

// TestDrawFails: those who waited for a block that did not come ask Redis at once, and draw none: the next
// failure would have them wait for one another.
func TestDrawFails(t *testing.T) {
	b := newBed(t)
	b.wakes = make(chan struct{})
	s := b.open("block=10", 1)
	p := limitOf(100)
	ended := make(chan error, 2)
	asked := make(chan struct{})
	b.fail = errors.New("lost")
	b.late = true
	b.done = func() {
		b.queueTo(t.Context(), s, p, ended)
		b.queueTo(t.Context(), s, p, ended)
	}
	if d := b.take(s, p, 1); d.Admitted {
		t.Errorf("%+v without a reply", d)
	}
	b.fail = nil
	b.done = func() { // while one of the two asks, so does the other
		defer close(asked)
		waits := make(chan struct{})
		b.waits = func() { close(waits) }
		b.wakes <- struct{}{}
		select {
		case err := <-ended:
			b.waits = nil
			if err != nil {
				t.Error(err)
			}
		case <-waits:
			t.Error("one waits for the other")
			b.wakes <- struct{}{}
		}
	}
	b.wakes <- struct{}{}
	<-asked
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !t.Failed() {
		b.want("used, with the block that nobody heard of", b.used(), 10+2)
	}
}

// TestTurns: a caller that no block has had room for asks Redis itself in the end.
func TestTurns(t *testing.T) {
	b := newBed(t)
	b.wakes = make(chan struct{})
	s := b.open("block=3", 1)
	p := limitOf(100)
	ended := make(chan quota.Decision, 1)
	for turn := range turns + 1 {
		b.done = func() {
			waits := make(chan struct{})
			b.waits = func() { close(waits) }
			if turn == 0 {
				go func() { ended <- b.take(s, p, 2) }()
			} else {
				b.wakes <- struct{}{}
			}
			select {
			case <-waits:
				if turn == turns {
					t.Error("it waits again")
				}
			case d := <-ended:
				if turn < turns || d.Tier != quota.TierRedis {
					t.Errorf("%+v after %d turns", d, turn)
				}
			}
		}
		b.take(s, p, 2)
	}
}

// TestTurnOfAnotherWindow: whoever comes in the next window, while a block of the one before is drawn, has
// nothing of that.
func TestTurnOfAnotherWindow(t *testing.T) {
	p := limitOf(100)
	b := newBed(t)
	s := b.open("block=10,ttl=3h", 1)
	var ended <-chan error
	b.done = func() {
		ended = b.queue(t.Context(), s, p)
		b.pass(time.Hour)
	}
	b.takes(s, p, 1)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	b.want("commands if the window ended during a wait", int64(b.commands), 2)

	b = newBed(t)
	s = b.open("block=10,ttl=3h,prefetch=0.5", 1)
	b.takes(s, p, 6)
	sent := make(chan struct{})
	goes := make(chan struct{})
	fetched := make(chan error)
	b.done = func() { close(sent); <-goes }
	go func() {
		_, err := s.fetch(t.Context())
		fetched <- err
	}()
	<-sent
	b.done = func() {
		close(goes)
		if err := <-fetched; err != nil {
			t.Error(err)
		}
		b.pass(time.Hour)
		if d := b.take(s, p, 1); d.Tier != quota.TierRedis {
			t.Errorf("%+v in the next window, of a block that was drawn ahead in the one before", d)
		}
	}
	b.take(s, p, 8)
}

// TestLarge: a request as large as a block waits for none, and leaves the one that is there to others.
func TestLarge(t *testing.T) {
	b := newBed(t)
	s := b.open("block=10", 1)
	p := limitOf(100)
	b.done = func() { b.take(s, p, 10) }
	b.takes(s, p, 1)
	b.take(s, p, 10)
	b.want("commands", int64(b.commands), 3)
	b.want("admitted", b.takes(s, p, 9), 9)
	b.want("commands", int64(b.commands), 3)
}

// TestTurn: who comes while a block is drawn waits for it, and asks Redis by itself if there
// are too few units for blocks.
func TestTurn(t *testing.T) {
	for limit, commands := range map[int64]int64{100: 1, 3: 3} {
		b := newBed(t)
		s := b.open("", 2)
		p := limitOf(limit)
		if limit == 3 {
			b.takes(s, p, 1)
		}
		second := make(chan int64)
		waited := false
		b.done = func() {
			waits := make(chan struct{})
			b.waits = func() { waited = true; close(waits) }
			went := make(chan struct{})
			go func() {
				n := b.takes(s, p, 1)
				close(went)
				second <- n
			}()
			select {
			case <-waits:
			case <-went:
			}
		}
		b.want("admitted", b.takes(s, p, 1)+<-second, 2)
		b.want(fmt.Sprintf("commands with a limit of %d", limit), int64(b.commands), commands)
		if waited != (commands == 1) {
			t.Errorf("with a limit of %d the second caller waited: %t", limit, waited)
		}
	}
}
