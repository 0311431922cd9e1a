package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/quota"
)

// reply is what a caller waits for.
type reply struct {
	answer
	err error
}

// answerWait is how long a caller waits for its answer: as long as a client of Redis does
// by default.
const answerWait = 3 * time.Second

// ask puts a message into the stream and waits for the consumer's answer. There is none
// if the stream was removed with the message in it.
func (q *queue) ask(ctx context.Context, o order) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	ctx, cancel := quota.WithTimeout(ctx, q.clock, answerWait)
	defer cancel()
	wait := make(chan reply, 1)
	o = q.enter(o, wait)
	defer q.forget(o.ID)
	stored, err := q.publish(o)
	if err != nil {
		return answer{}, err
	}
	select {
	case reply := <-wait:
		q.note(o.Key, o.Verb, reply)
		return reply.answer, reply.err
	case err := <-stored.Err():
		return answer{}, err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// leave puts a request into the stream and waits no longer than until it is there.
// What the consumer says later is noted.
func (q *queue) leave(ctx context.Context, o order) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o = q.enter(o, nil)
	stored, err := q.publish(o)
	if err == nil {
		select {
		case <-stored.Ok():
			q.unheard.Add(1)
			return nil
		case err = <-stored.Err():
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return err
}

// publish sends a message. The stream's server says when it is stored.
func (q *queue) publish(o order) (jetstream.PubAckFuture, error) {
	stored, err := q.js.PublishMsgAsync(&nats.Msg{Subject: q.names.requests(), Data: encode(o)})
	if err != nil {
		return nil, fmt.Errorf("putting a message into the stream: %w", err)
	}
	return stored, nil
}

// enter gives a message its number. Its caller waits on the channel; nil if it
// goes ahead.
func (q *queue) enter(o order, wait chan reply) order {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	o.ID = q.last
	o.Answer = q.inbox
	if wait != nil {
		q.waiting[o.ID] = wait
	} else {
		q.ahead[o.ID] = o.Key
	}
	return o
}

func (q *queue) forget(id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, id)
}

// hear takes the consumer's answers.
func (q *queue) hear(msg *nats.Msg) {
	var a answer
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if wait, ok := q.waiting[a.ID]; ok {
		delete(q.waiting, a.ID)
		wait <- reply{answer: a}
		return
	}
	if k, ok := q.ahead[a.ID]; ok {
		delete(q.ahead, a.ID)
		if !a.Admitted {
			q.full[k] = true
			q.overruns.Add(1)
		}
	}
}

// lose tells all who wait that there will be no answer.
func (q *queue) lose(err error) {
	if err == nil {
		err = errors.New("disconnected")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, wait := range q.waiting {
		delete(q.waiting, id)
		wait <- reply{err: fmt.Errorf("the connection was lost before the answer came: %w", err)}
	}
	clear(q.ahead)
}

// note remembers whether a subject has something left, as far as the consumer has
// said.
func (q *queue) note(k key, v verb, r reply) {
	if r.err != nil || !q.admits || v != take {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.Admitted {
		delete(q.full, k)
	} else {
		q.full[k] = true
	}
}

func (q *queue) isFull(k key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.full[k]
}
