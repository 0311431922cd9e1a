// Package network makes the network between instances and a store worse than it is, on purpose: on the connections of a
// real client, or for the model of a simulation.
package network

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/trouble"
)

// Link is the network between one instance and one store. Until [Link.Begin] and from [Link.End] on nothing is wrong
// with it.
type Link struct {
	all    trouble.List
	length time.Duration // of the run
	now    func() int64
	random *rand.Rand

	begun atomic.Int64 // 0 before
	ended chan struct{}

	mu   sync.Mutex
	free [2]int64 // when each way has sent all that it was given

	// Lost counts requests that did not reach the store, and LostReplies those whose reply did not come back.
	Lost, LostReplies atomic.Int64
}

// NewLink makes the link of an instance to a store with events of its network, in a run of that length; nil if there
// are none. Now is the time in nanoseconds, above 0. Random is safe for concurrent use.
func NewLink(all trouble.List, length time.Duration, now func() int64, random *rand.Rand) *Link {
	if len(all) == 0 {
		return nil
	}
	return &Link{all: all, length: length, now: now, random: random, ended: make(chan struct{})}
}

// Slow makes the link of a run without an end that is slower by a latency.
func Slow(latency time.Duration, now func() int64, random *rand.Rand) *Link {
	slow := trouble.Event{When: trouble.Always, What: trouble.What{Conditions: trouble.Conditions{Latency: latency}}}
	return NewLink(trouble.List{slow}, 0, now, random)
}

// Begin has conditions begin when they are due, counted from now.
func (l *Link) Begin() { l.begun.Store(l.now()) }

// End ends all conditions. It is called once.
func (l *Link) End() { close(l.ended) }

// in passes the conditions that hold at a time.
func (l *Link) in(at int64, yield func(event *trouble.Event)) {
	begun := l.begun.Load()
	if begun == 0 || l.over() {
		return
	}
	for i := range l.all {
		if event := &l.all[i]; event.When.In(time.Duration(at-begun), l.length) {
			yield(event)
		}
	}
}

func (l *Link) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// The two ways of a connection.
const (
	there = iota
	back
)

// due is when so many bytes that are sent now arrive.
func (l *Link) due(way, n int) int64 {
	now := l.now()
	at := now
	l.in(now, func(event *trouble.Event) {
		if event.What.Bandwidth > 0 {
			l.mu.Lock()
			l.free[way] = max(l.free[way], now) + int64(float64(n)/event.What.Bandwidth*1e9)
			at = max(at, l.free[way])
			l.mu.Unlock()
		}
	})
	l.in(now, func(event *trouble.Event) {
		if way == back && event.What.Latency > 0 {
			at += int64(event.What.Delay(l.random.Float64()))
		}
	})
	l.in(now, func(event *trouble.Event) {
		switch _, duration := event.When.Within(l.length); {
		case !event.What.Cut:
		case l.length > 0: // or a run would wait for its last requests, and they for its end
			at = max(at, l.begun.Load()+int64(duration))
		default:
			at = 1 << 62
		}
	})
	return at
}

// loses draws what becomes of a request that is sent now.
func (l *Link) loses() (request, reply bool) {
	l.in(l.now(), func(event *trouble.Event) {
		request = request || l.random.Float64() < event.What.Loss
		reply = reply || l.random.Float64() < event.What.ReplyLoss
	})
	return request, reply && !request
}

// precise bounds the threads that wait for the end of their time in the system.
var precise = make(chan struct{}, 16)

// wait waits until a time, or until nothing is wrong any more. A timer of Go's alone is up to a millisecond late.
func (l *Link) wait(at int64) {
	const tail = int64(1200 * time.Microsecond)
	left := at - l.now()
	if left > tail {
		select {
		case <-time.After(time.Duration(left - tail)):
		case <-l.ended:
			return
		}
	}
	left = at - l.now()
	if left <= 0 {
		return
	}
	select {
	case precise <- struct{}{}:
		sleep(left)
		<-precise
	default:
		time.Sleep(time.Duration(left))
	}
}

// errReset is what the client sees when its connection is lost.
var errReset = Reset("planned loss")
