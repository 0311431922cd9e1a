package nats

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"strings"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
)

// usable tries what every run does on servers that were running already: make a stream
// and a consumer, publish, and remove both. What it cannot remove is empty again.
func (n *Store) usable(ctx context.Context) error {
	name := family + "check_" + strings.ToLower(crand.Text())
	stream, err := n.js.CreateStream(ctx,
		jetstream.StreamConfig{Name: name, Subjects: []string{name}, Storage: jetstream.FileStorage, MaxMsgs: 1})
	if err != nil {
		return fmt.Errorf("make a stream: %w", err)
	}
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{})
	if err != nil {
		err = fmt.Errorf("make a consumer: %w", err)
	} else if _, err = n.js.Publish(ctx, name, []byte("1"), jetstream.WithRetryAttempts(0)); err != nil {
		err = fmt.Errorf("publish to a stream: %w", err)
	}
	// Also if the server has said that something is not allowed, which ends ctx.
	last, end := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer end()
	if derr := n.js.DeleteStream(last, name); derr != nil && err == nil {
		err = fmt.Errorf("remove a stream: %w", derr)
	}
	return err
}

// unusable says in one line what keeps runs from servers that are reached, with a way
// out; "" if it is something else.
func (n *Store) unusable(err error, _ string) string {
	var said *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "has no JetStream for this account: enable it there"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return "has no JetStream: start it with --jetstream"
	case errors.Is(err, natsgo.ErrPermissionViolation):
		return "lets this user not do what runs do: let it publish to $JS.API.> and to subjects of its streams, and " +
			"subscribe to its inbox"
	case errors.As(err, &said):
		return "takes no streams of this account: see the limits and the room of its JetStream"
	case errors.Is(err, natsgo.ErrAuthorization), errors.Is(err, natsgo.ErrAuthExpired):
		return cluster.LoginRefused
	}
	return ""
}
