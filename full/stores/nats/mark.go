package nats

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Marker = (*Store)(nil)

// mark is the name of the stream that a run would miss, and of what is published to it.
func mark(scope stores.Scope) string { return scope.Schema() + "_mark" }

// Mark implements [stores.Marker] by a stream of one message.
func (n *Store) Mark(ctx context.Context, scope stores.Scope) error {
	_, err := n.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: mark(scope), Subjects: []string{mark(scope)}, Storage: jetstream.FileStorage, MaxMsgs: 1,
	})
	return format.Wrapf(err, "leave a mark in nats")
}

// Marked implements [stores.Marker].
func (n *Store) Marked(ctx context.Context, scope stores.Scope) (stores.Sign, error) {
	sign := stores.Sign{There: true}
	_, err := n.js.Publish(ctx, mark(scope), []byte("1"), jetstream.WithRetryAttempts(0))
	if errors.Is(err, jetstream.ErrNoStreamResponse) { // or its streams are not ready
		_, err = n.js.Stream(ctx, mark(scope))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			sign.There = false
			err = nil
		} else if err == nil {
			err = errors.New("its stream does not take messages")
		}
	}
	if err != nil {
		return stores.Sign{}, err
	}
	sign.Incarnation = n.admin.ConnectedServerId()
	return sign, nil
}

// Unmark implements [stores.Marker].
func (n *Store) Unmark(ctx context.Context, scope stores.Scope) error {
	err := n.js.DeleteStream(ctx, mark(scope))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}
