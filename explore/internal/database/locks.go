package database

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What a client has locked it keeps until its next step, so there is no use in waiting for it when tables are looked
// at. Sessions that were ended give up what they had locked.
const (
	WaitForLocks = "SET lock_timeout TO 0;"
	LookBriefly  = "SET lock_timeout TO '10ms';"
)

const lockNotAvailable = "55P03"

// IsLocked reports whether a table could not be looked at, since a client has it locked.
func IsLocked(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == lockNotAvailable
}

// waiters asks who waits for a lock and for whom. pg_locks is read at one
// moment: if all statements are in it, then none of them runs, and nothing
// changes until a client is let go on.
const waiters = `SELECT pid, pg_blocking_pids(pid) FROM pg_locks WHERE NOT granted AND pid = ANY($1)`

// Blocked are those of the sessions that wait for a lock, each with the sessions that it waits for, by the numbers of
// their processes.
func Blocked(ctx context.Context, pool *pgxpool.Pool, sessions []int32) (map[int32][]int32, error) {
	out := map[int32][]int32{}
	var pid int32
	var on []int32
	rows, _ := pool.Query(ctx, waiters, sessions) // ForEachRow returns its error
	_, err := pgx.ForEachRow(rows, []any{&pid, &on}, func() error {
		out[pid] = append(out[pid], on...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask who is blocked: %w", err)
	}
	return out, nil
}

// Circular reports whether somebody waits for himself in the end: whoever waits for none that waits is taken out until
// there is none.
func Circular[K comparable](blockers map[K][]K) bool {
	left := maps.Clone(blockers)
	waits := func(k K) bool { return left[k] != nil }
	for n := len(left) + 1; len(left) < n; {
		n = len(left)
		maps.DeleteFunc(left, func(_ K, others []K) bool { return !slices.ContainsFunc(others, waits) })
	}
	return len(left) > 0
}

// Ended reports whether no session of these is left.
func Ended(ctx context.Context, pool *pgxpool.Pool, sessions []int32) (ended bool, err error) {
	const left = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = ANY($1))"
	err = pool.QueryRow(ctx, left, sessions).Scan(&ended)
	if err != nil {
		return false, fmt.Errorf("ask which sessions there are: %w", err)
	}
	return ended, nil
}
