package nats

import (
	"errors"
	"slices"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/quota"
)

// refusals are errors of a server that is not there, or will have nothing to do with
// the client.
var refusals = []error{
	natsgo.ErrConnectionClosed, natsgo.ErrConnectionReconnecting, natsgo.ErrDisconnected, natsgo.ErrNoServers,
	natsgo.ErrNoResponders,
	natsgo.ErrStaleConnection, natsgo.ErrAuthorization, natsgo.ErrAuthExpired, natsgo.ErrPermissionViolation,
	natsgo.ErrReconnectBufExceeded,
	jetstream.ErrJetStreamNotEnabled,
}

// errorKind is [stores.Driver.ErrorKind].
func errorKind(err error) quota.ErrorKind {
	var said *jetstream.APIError
	switch {
	case errors.Is(err, natsgo.ErrTimeout), errors.Is(err, jetstream.ErrAsyncPublishTimeout):
		return quota.ErrorTimeout
	case errors.As(err, &said) && said.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return quota.ErrorContention
	case said != nil && said.Code == 503, slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) }):
		return quota.ErrorStore
	}
	return ""
}
