package explore

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/explore/internal/inproc"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// Target is where a schedule is run again. The zero value is this process.
type Target struct {
	// Redis is a client of the server to run on, which stays the caller's and must be
	// a [*redis.Client]. Commands go through a client of its own with the same
	// options; keys have a prefix of their own and are removed at the end. Time is
	// moved for keys by taking it off the time they have left, and by deleting those
	// that have none; scripts that ask for TIME see the server's own.
	Redis redis.UniversalClient
	// RedisStore is the store that Redis is a client of, which keeps the lease on the
	// keys; nil if none is kept.
	RedisStore stores.Store
	// Process is that of schedules of a service, which are repeated on Redis, with an empty database, or without it on one
	// in memory.
	Process
	// Postgres is the server for schedules of statements.
	Postgres stores.Store
	// Name of the Redis in the record; empty asks it for its version.
	Name string
	// Isolate has a schedule of a foreign strategy run in a process of its own, without
	// Redis: see [Resources.Isolate]. If it ends that process and was not issued for that, the
	// error is a [*DiedError].
	Isolate bool
}

// embedded is what the store in this process is called.
const embedded = "the embedded Redis"

// Replay repeats the schedule of a token that was issued for a registered
// strategy.
func Replay(ctx context.Context, token string, target Target) (*results.Replay, error) {
	sel, err := TokenStrategy(token)
	if err != nil {
		return nil, err
	}
	return ReplayOf(ctx, sel, token, target)
}

// ReplayOf repeats the schedule of a token that was issued for this strategy,
// registered or not.
func ReplayOf(ctx context.Context, sel strategies.Selection, token string, target Target) (*results.Replay, error) {
	ticket, path, err := parseToken(token)
	if err != nil {
		return nil, err
	}
	if ticket.Strategy != sel.String() {
		return nil, fmt.Errorf("replay: the token was issued for %s, not for %s", ticket.Strategy, sel)
	}
	cfg, err := ticket.config(sel, &target)
	if err != nil {
		return nil, &UnfitError{Err: fmt.Errorf("replay: %w", err)}
	}
	cfg.Isolate = target.Isolate && target.Redis == nil
	if cfg.isolates(sel) {
		return replayInChild(ctx, sel, &cfg, &ticket, token)
	}
	here, err := replayHere(ctx, sel, cfg, path, ticket.Property)
	if err != nil {
		return nil, err
	}
	switch {
	case OnPostgres(sel) || cfg.Service != "":
		here.replay.Same = true
		return here.replay, nil
	case target.Redis == nil:
		here.replay.Store = embedded
		here.replay.Same = true
		return here.replay, nil
	case sel.Foreign:
		return nil, &UnfitError{Err: fmt.Errorf("strategy %s reads the clock of package time, which moves in this process "+
			"alone: leave the server out", sel.Name)}
	}
	cfg.shares = here.shares
	there, err := replayLive(ctx, sel, cfg, target, func(s *search) (*results.Replay, error) {
		s.normal = here.normal
		return s.replay(path, ticket.Property)
	})
	if err != nil {
		return nil, err
	}
	there.Same = slices.EqualFunc(there.Finding.Steps, here.replay.Finding.Steps, sameReply)
	if !there.Same {
		there.Notes = append(there.Notes, "not every reply is the one that the embedded store gives")
	}
	return there, nil
}

// firstReplay is a replay on the store that the schedule was found on, and what a replay on a server needs of it.
type firstReplay struct {
	replay *results.Replay
	normal *normal
	shares bool
}

// replayHere repeats a schedule on the store that it was found on, or on one of the same kind.
func replayHere(ctx context.Context, sel strategies.Selection, cfg Config, path []engine.Choice,
	property Property) (first firstReplay, err error) {
	_, err = explored(ctx, sel, cfg, func(s *search) (any, error) {
		if err := s.serially(); err != nil {
			return nil, err
		}
		if property == TTL {
			if err := s.orders(); err != nil {
				return nil, err
			}
		}
		first.normal = s.normal
		first.shares = s.Setup.Shares
		replay, err := s.replay(path, property)
		first.replay = replay
		if errors.Is(err, engine.ErrMisfit) {
			err = fmt.Errorf("%w: %w", ErrToken, engine.ErrMisfit)
		}
		return nil, err
	})
	return first, err
}

// sameReply reports whether a step had the same result in two replays.
func sameReply(a, b results.Step) bool {
	return a.Reply == b.Reply && a.Outcome == b.Outcome && a.InUse == b.InUse
}

func replayLive(ctx context.Context, sel strategies.Selection, cfg Config, target Target,
	again func(*search) (*results.Replay, error)) (_ *results.Replay, err error) {
	client, ok := target.Redis.(*redis.Client)
	if !ok {
		return nil, &UnfitError{Err: fmt.Errorf("a schedule is repeated on one Redis server: give a *redis.Client, not a %T",
			target.Redis)}
	}
	name := target.Name
	if name == "" {
		name, err = inproc.ServerName(ctx, client)
		if err != nil {
			return nil, err
		}
	}
	scope := exploreScope()
	if target.RedisStore != nil {
		if err := stores.Lease(ctx, target.RedisStore, scope); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, target.RedisStore.Wipe(context.WithoutCancel(ctx), scope)) }()
	}
	replay, err := watched(ctx, &cfg, func(setup *engine.Setup) (*results.Replay, error) {
		e := inproc.Live(ctx, sel, *setup, client, scope.Prefix())
		r, err := again(newSearch(e, sel, cfg))
		return r, errors.Join(err, e.Close())
	})
	if errors.Is(err, engine.ErrMisfit) {
		err = fmt.Errorf("the schedule cannot be repeated on %s: the strategy takes another way there, as one does whose "+
			"scripts ask for TIME", name)
	}
	if replay != nil {
		replay.Store = name
		if slices.ContainsFunc(replay.Finding.Steps, func(step results.Step) bool {
			return step.Event == codes.EventTick
		}) {
			replay.Notes = append(replay.Notes,
				"keys expire by being deleted when virtual time says so; the server's own TIME does not move")
		}
	}
	return replay, err
}

// exploreScope is what one replay keeps its keys under.
func exploreScope() stores.Scope {
	return stores.Scope("explore_" + strings.ToLower(crand.Text()[:12]))
}

// replay runs a schedule twice and judges it.
func (s *search) replay(path []engine.Choice, property Property) (*results.Replay, error) {
	b := breakage{Finding{Property: property}, path}
	if err := s.repeat(&b); err != nil {
		return nil, err
	}
	replay := &results.Replay{
		Strategy: s.sel.String(), Policy: s.cfg.policyName(), Property: property,
		Finding: &b.Finding, Store: s.Traits.Store,
	}
	return replay, s.at(path, func() error {
		replay.Leak = s.Run.Truth.Leak()
		found, err := s.check(map[Property]bool{property: true})
		for kind := range s.Run.Aborts {
			found = append(found, Finding{Property: kind, Detail: abortDetail})
		}
		for _, finding := range found {
			if finding.Property == property && !replay.Broken {
				replay.Broken = true
				replay.Finding.Detail = finding.Detail
				replay.Finding.Units = finding.Units
			}
		}
		return errors.Join(err, s.finish())
	})
}

// TokenStrategy is the registered strategy that a token was issued for.
func TokenStrategy(token string) (sel strategies.Selection, err error) {
	ticket, _, err := parseToken(token)
	if err != nil {
		return sel, err
	}
	return ticket.selection()
}
