package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

const (
	// family begins the name of every stream of every run.
	family = "quotabench_"
	// holdingPrefix begins a stream for each scope that a process keeps. Its description
	// is the owner; its one message expires unless it is written anew, which renews the
	// lease. No stream of a scope begins so: those have no hyphen.
	holdingPrefix = "quotabench-holding-"
)

// board is the server as a [leases.Board].
type board struct{ *Store }

// entry is the stream that the entry of a scope is.
func entry(scope stores.Scope, text string) jetstream.StreamConfig {
	name := holdingPrefix + string(scope)
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{name}, Description: text, Storage: jetstream.FileStorage, MaxMsgs: 1,
		MaxAge: server.LeaseLife,
	}
}

// Name implements [leases.Board].
func (board) Name(scope stores.Scope) string { return scope.Schema() }

// Entries implements [leases.Board].
func (b board) Entries(ctx context.Context) (out []leases.Entry, err error) {
	err = b.all(ctx, func(streamInfo *jetstream.StreamInfo) {
		if scope, ok := strings.CutPrefix(streamInfo.Config.Name, holdingPrefix); ok {
			out = append(out, leases.Entry{
				Scope: stores.Scope(scope), Text: streamInfo.Config.Description, Version: int64(streamInfo.State.LastSeq),
				Renewed: streamInfo.State.Msgs > 0,
			})
		}
	})
	return out, err
}

// Enter implements [leases.Board]. Of several that make a stream of one name, one does; of
// several that take it over, one writes the next message.
func (b board) Enter(ctx context.Context, old leases.Entry, text string) (bool, error) {
	config := entry(old.Scope, text)
	if old.Text == "" {
		_, err := b.js.CreateStream(ctx, config)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, b.renew(ctx, old.Scope)
	}
	_, err := b.js.Publish(ctx, config.Name, nil, jetstream.WithExpectLastSequence(uint64(old.Version)))
	var said *jetstream.APIError
	if errors.As(err, &said) && said.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		errors.Is(err, jetstream.ErrNoStreamResponse) {
		return false, nil
	}
	if err == nil {
		_, err = b.js.UpdateStream(ctx, config)
	}
	return err == nil, err
}

func (b board) renew(ctx context.Context, scope stores.Scope) error {
	_, err := b.js.Publish(ctx, holdingPrefix+string(scope), nil, jetstream.WithRetryAttempts(0))
	return err
}

// Renew implements [leases.Board].
func (b board) Renew(ctx context.Context, scopes []stores.Scope) error {
	for _, scope := range scopes {
		err := b.renew(ctx, scope)
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			_, err = b.Enter(ctx, leases.Entry{Scope: scope}, server.Us().Encode())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Leave implements [leases.Board].
func (b board) Leave(ctx context.Context, scope stores.Scope, _ bool) error {
	err := b.js.DeleteStream(ctx, holdingPrefix+string(scope))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// Clear implements [leases.Board]. What it counts are streams.
func (b board) Clear(ctx context.Context, scope stores.Scope) (removed int64, err error) {
	var names []string
	err = b.streams(ctx, scope, func(streamInfo *jetstream.StreamInfo) { names = append(names, streamInfo.Config.Name) })
	for _, name := range names {
		derr := b.js.DeleteStream(ctx, name)
		if derr == nil {
			removed++
		} else if !errors.Is(derr, jetstream.ErrStreamNotFound) {
			err = errors.Join(err, fmt.Errorf("remove the stream %s: %w", name, derr))
		}
	}
	return removed, err
}

// Count implements [leases.Board]. What it counts are messages.
func (b board) Count(ctx context.Context, entered []stores.Scope) (map[stores.Scope]int64, error) {
	counts := map[stores.Scope]int64{}
	err := b.all(ctx, func(streamInfo *jetstream.StreamInfo) {
		if rest, ok := strings.CutPrefix(streamInfo.Config.Name, family); ok {
			counts[cluster.Within(rest, entered)] += int64(streamInfo.State.Msgs)
		}
	})
	return counts, err
}
