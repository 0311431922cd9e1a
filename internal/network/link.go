package network

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Link is the network between one instance and one store. Until [Link.Begin] and from [Link.End] on nothing is wrong with it.
type Link struct {
	all    []Condition
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

// NewLink makes the link of an instance to a store that the conditions concern, in a run of that length; nil if none does.
// Now is the time in nanoseconds, above 0. Random is safe for concurrent use.
func NewLink(all []Condition, concerns func(Condition) bool, length time.Duration, now func() int64, random *rand.Rand) *Link {
	l := &Link{length: length, now: now, random: random, ended: make(chan struct{})}
	for _, c := range all {
		if concerns(c) {
			l.all = append(l.all, c)
		}
	}
	if len(l.all) == 0 {
		return nil
	}
	return l
}

// Begin has conditions begin when they are due, counted from now.
func (l *Link) Begin() { l.begun.Store(l.now()) }

// End ends all conditions. It is called once.
func (l *Link) End() { close(l.ended) }

// in passes the conditions that hold at a time.
func (l *Link) in(at int64, yield func(c *Condition)) {
	begun := l.begun.Load()
	if begun == 0 || l.over() {
		return
	}
	for i := range l.all {
		if c := &l.all[i]; c.In(time.Duration(at-begun), l.length) {
			yield(c)
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
	l.in(now, func(c *Condition) {
		if c.Bandwidth > 0 {
			l.mu.Lock()
			l.free[way] = max(l.free[way], now) + int64(float64(n)/c.Bandwidth*1e9)
			at = max(at, l.free[way])
			l.mu.Unlock()
		}
	})
	l.in(now, func(c *Condition) {
		if way == back && c.Latency > 0 {
			at += int64(c.Delay(l.random.Float64()))
		}
	})
	l.in(now, func(c *Condition) {
		if _, to := c.Within(l.length); c.Cut && l.length > 0 { // or a run would wait for its last requests, and they for its end
			at = max(at, l.begun.Load()+int64(min(to, l.length)))
		} else if c.Cut {
			at = 1 << 62
		}
	})
	return at
}

// loses draws what becomes of a request that is sent now.
func (l *Link) loses() (request, reply bool) {
	l.in(l.now(), func(c *Condition) {
		request = request || l.random.Float64() < c.Loss
		reply = reply || l.random.Float64() < c.ReplyLoss
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
	if left = at - l.now(); left <= 0 {
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
