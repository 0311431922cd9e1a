package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// consumer decides. There is one in a run, in the first instance. Its counters are
// what the stream says, so it has them again after it was lost.
type consumer struct {
	nats  *nats.Conn
	clock quota.Clock
	read  jetstream.ConsumeContext
	asked *nats.Subscription

	mu       sync.Mutex // never held across anything that waits
	counters map[key]int64
	newest   map[string]int64 // window, by policy

	decided, lag, longest strategies.Tally // lags in nanoseconds
}

// startConsumer reads the stream from its beginning.
func startConsumer(ctx context.Context, conn *nats.Conn, stream jetstream.JetStream, clock quota.Clock,
	n names) (*consumer, error) {
	c := &consumer{nats: conn, clock: clock, counters: map[key]int64{}, newest: map[string]int64{}}
	ordered, err := stream.OrderedConsumer(ctx, n.stream,
		jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return nil, fmt.Errorf("reading the stream %s: %w", n.stream, err)
	}
	c.read, err = ordered.Consume(c.handle)
	if err != nil {
		return nil, fmt.Errorf("reading the stream %s: %w", n.stream, err)
	}
	c.asked, err = conn.Subscribe(n.used(), c.tell)
	if err != nil {
		c.read.Stop()
		return nil, fmt.Errorf("listening to questions: %w", err)
	}
	return c, nil
}

// handle carries one message of the stream out. Messages come one by one.
func (c *consumer) handle(msg jetstream.Msg) {
	var o order
	if err := json.Unmarshal(msg.Data(), &o); err != nil {
		return // not one of ours
	}
	answer := c.apply(o)
	// An answer that cannot be sent now would come too late: its caller was told that
	// the connection is lost.
	_ = c.nats.Publish(o.Answer, encode(answer))
	c.decided.Add(1)
	if meta, err := msg.Metadata(); err == nil {
		lag := int64(max(c.clock.Now().Sub(meta.Timestamp), 0))
		c.lag.Add(lag)
		c.longest.Store(max(c.longest.Load(), lag))
	}
}

// apply changes the counters as a message says.
func (c *consumer) apply(o order) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(o.Key)
	switch o.Verb {
	case set:
		for subject, units := range o.Counters {
			k := o.Key
			k.Subject = subject
			c.counters[k] = units
			if units == 0 {
				delete(c.counters, k)
			}
		}
		return answer{ID: o.ID}
	case refund:
		if used, ok := c.counters[o.Key]; ok {
			c.counters[o.Key] = max(used-o.Units, 0)
		}
	case take:
		used := c.counters[o.Key]
		if o.Units > o.Limit-used {
			return answer{ID: o.ID, Used: used, Known: true}
		}
		c.counters[o.Key] = used + o.Units
		return answer{ID: o.ID, Admitted: true, Used: used + o.Units, Known: true}
	}
	return answer{ID: o.ID, Used: c.counters[o.Key]}
}

// forget drops counters of windows before the last but one, when a new one begins:
// refunds may still come for the one that has ended.
func (c *consumer) forget(k key) {
	newest, ok := c.newest[k.Policy]
	if ok && k.Window <= newest {
		return
	}
	c.newest[k.Policy] = k.Window
	if !ok {
		return
	}
	for key := range c.counters {
		if key.Policy == k.Policy && key.Window < k.Window-1 {
			delete(c.counters, key)
		}
	}
}

// tell answers what a counter is.
func (c *consumer) tell(msg *nats.Msg) {
	var k key
	if err := json.Unmarshal(msg.Data, &k); err != nil {
		return
	}
	c.mu.Lock()
	used, known := c.counters[k]
	c.mu.Unlock()
	_ = msg.Respond(encode(answer{Used: used, Known: known}))
}

// stop ends the consumer, and waits until it has.
func (c *consumer) stop(ctx context.Context) error {
	c.read.Stop()
	err := c.asked.Unsubscribe()
	if errors.Is(err, nats.ErrConnectionClosed) {
		err = nil
	}
	select {
	case <-c.read.Closed():
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return err
}

// maxWait bounds how long the stream may take to be made.
const maxWait = 10 * time.Second
