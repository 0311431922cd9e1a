package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// doubt is a transaction of which it is not known what became of it.
type doubt struct {
	number int64
	// asked is how many databases were told to prepare it.
	asked int
	// decided is set once both had prepared it: it will be committed.
	decided bool
	// pid is the server's process that was told last and did not answer; 0 if the
	// reply is known. It may still be about to prepare.
	pid uint32
}

const (
	jobRecover   = "recover"
	recoverEvery = time.Second
	// settleTime bounds how long a caller is kept by a transaction in doubt.
	settleTime = 5 * time.Second
)

// errUnsettled says that a server is still at work on a transaction.
var errUnsettled = errors.New("the server has not ended the connection yet")

// settle ends a transaction in doubt, and reports whether that is done. What it
// cannot end is left to the job.
func (t *twoPhase) settle(ctx context.Context, d doubt) bool {
	t.doubted.Add(1)
	ctx, cancel := quota.WithTimeout(ctx, t.clock, settleTime)
	defer cancel()
	if t.end(ctx, d) == nil {
		return true
	}
	t.mu.Lock()
	t.doubts = append(t.doubts, d)
	t.mu.Unlock()
	t.wake(jobRecover)
	return false
}

// end commits what was decided, in the databases' order, and rolls back what was
// not, in the opposite one: at no moment is a transaction prepared in the second
// database alone unless the first has committed it.
func (t *twoPhase) end(ctx context.Context, d doubt) error {
	if d.decided {
		for i := range t.parties {
			if err := t.parties[i].finish(ctx, "COMMIT", d.number); err != nil {
				return err
			}
		}
		return nil
	}
	for i := d.asked - 1; i >= 0; i-- {
		if i == d.asked-1 && d.pid != 0 {
			if err := t.parties[i].silence(ctx, d.pid); err != nil {
				return err
			}
		}
		if err := t.parties[i].finish(ctx, "ROLLBACK", d.number); err != nil {
			return err
		}
	}
	return nil
}

// silence ends a server's process: until it has gone, it may still prepare what it
// was told to.
func (p *party) silence(ctx context.Context, pid uint32) error {
	var there bool
	err := p.pool.QueryRow(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1",
		int32(pid)).Scan(&there)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("%s: end a connection: %w", p.tier, err)
	}
	return errUnsettled
}

// finish commits or rolls back a prepared transaction. One that is not there has
// been finished already, or was never prepared.
func (p *party) finish(ctx context.Context, how string, number int64) error {
	_, err := p.pool.Exec(ctx, how+" PREPARED "+literal(p.name(number)))
	if pgError, ok := errors.AsType[*pgconn.PgError](err); ok && pgError.Code == "42704" { // undefined object
		return nil
	}
	return family.Wrapf(err, "%s: %s PREPARED", p.tier, how)
}

// prepared are the numbers of this instance's transactions that are prepared.
func (p *party) prepared(ctx context.Context) ([]int64, error) {
	const list = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, $1)"
	rows, _ := p.pool.Query(ctx, list, p.prefix) // CollectRows returns its error
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("%s: look for prepared transactions: %w", p.tier, err)
	}
	var out []int64
	for _, name := range names {
		if n, err := strconv.ParseInt(strings.TrimPrefix(name, p.prefix), 10, 64); err == nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// settleLeftOver settles what an earlier life of this instance has left behind. What is
// prepared in the second database alone was committed in the first.
func (t *twoPhase) settleLeftOver(ctx context.Context) error {
	var left [2][]int64
	for i := range t.parties {
		var err error
		left[i], err = t.parties[i].prepared(ctx)
		if err != nil {
			return err
		}
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(left[0], left[1])))) {
		decided := !slices.Contains(left[0], n)
		if err := t.end(ctx, doubt{number: n, asked: len(t.parties), decided: decided}); err != nil {
			return fmt.Errorf("recover a transaction: %w", err)
		}
		t.recovered.Add(1)
	}
	return nil
}

// Jobs implements strategies.Jobber: it settles what callers had to leave in doubt,
// such as while a server is away.
func (t *twoPhase) Jobs() []strategies.Job {
	return []strategies.Job{{
		Name: jobRecover, Every: recoverEvery,
		Pending: func() bool {
			t.mu.Lock()
			defer t.mu.Unlock()
			return len(t.doubts) > 0
		},
		Run: t.settleAll,
	}}
}

// settleAll tries again to settle what is in doubt. It goes on if one fails, and
// returns the first error.
func (t *twoPhase) settleAll(ctx context.Context) (changed bool, first error) {
	t.mu.Lock()
	doubts := t.doubts
	t.doubts = nil
	t.mu.Unlock()
	for _, doubt := range doubts {
		err := t.end(ctx, doubt)
		if err == nil {
			changed = true
			continue
		}
		if first == nil {
			first = err
		}
		t.mu.Lock()
		t.doubts = append(t.doubts, doubt)
		t.mu.Unlock()
	}
	return changed, first
}

// Close implements strategies.Strategy. What is still in doubt is tried once more:
// it would keep its rows locked.
func (t *twoPhase) Close(ctx context.Context) error {
	for range 50 {
		_, err := t.settleAll(ctx)
		if !errors.Is(err, errUnsettled) {
			return err
		}
		if err := t.clock.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return errUnsettled
}

// literal is a text in SQL, where no argument can stand.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
