package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/stores/server"
)

// Reader has the commands that an audit sends. None of them can write: that is for the compiler and, in scripts, for Redis to see.
type Reader interface {
	DBSize(ctx context.Context) *redis.IntCmd
	Scan(ctx context.Context, cursor uint64, match string, count int64) *redis.ScanCmd
	EvalRO(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
}

// batch is how many subjects are read at a time, and how many keys a SCAN looks at.
const batch = 500

// find lists subjects that the stores have, at most so many as are looked at, and estimates how many there are.
func (a *Audit) find(ctx context.Context) (all []Subject, err error) {
	head, tail, _ := strings.Cut(a.Key, "{subject}")
	found := map[string]bool{}
	size, err := a.Redis.DBSize(ctx).Result()
	for cursor, seen := uint64(0), int64(batch); err == nil; seen += batch {
		var keys []string
		keys, cursor, err = a.Redis.Scan(ctx, cursor, server.GlobEscape(head)+"*"+server.GlobEscape(tail), batch).Result()
		for _, k := range keys {
			found[strings.TrimSuffix(strings.TrimPrefix(k, head), tail)] = true
		}
		if cursor == 0 || len(found) >= a.Most {
			a.r.About = int(int64(len(found)) * max(size, seen) / seen)
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the keys of Redis: %w", err)
	}
	rows, err := a.rows(ctx, " LIMIT @most", nil)
	for _, r := range rows {
		found[r.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(found))[:min(len(found), a.Most)] {
		all = append(all, Subject{Name: name, Mechanisms: []string{}})
	}
	a.r.Looked, a.r.About = len(all), max(a.r.About, len(found))
	return all, err
}

// read asks both stores about subjects.
func (a *Audit) read(ctx context.Context, all []Subject) error {
	fields := slices.Concat([]any{len(a.knows.Fields)}, a.knows.Fields, a.knows.Less)
	for some := range slices.Chunk(all, batch) {
		at, names, keys := map[string]*Subject{}, []string(nil), []string(nil)
		for i := range some {
			s := &some[i]
			at[s.Name], names, keys = s, append(names, s.Name), append(keys, a.key(s))
		}
		got, err := a.Redis.EvalRO(ctx, file("read.lua"), keys, fields...).Slice()
		if err != nil {
			return fmt.Errorf("read Redis: %w", err)
		}
		rows, err := a.rows(ctx, " WHERE subject::text = ANY(@subjects)", names)
		if err != nil {
			return err
		}
		for i := range some {
			s := &some[i]
			s.Redis, s.Postgres = nil, nil
			s.TTL, s.limit = got[2*i].(int64), a.Policy.Limit
			if n, ok := got[2*i+1].(int64); ok {
				s.Redis = &n
			}
		}
		for _, r := range rows {
			s := at[r.Name]
			s.Postgres, s.limit = &r.Units, *cmp.Or(r.Limit, &s.limit)
		}
		for _, s := range at {
			if s.Units = 0; a.Postgres != nil && (s.Redis != nil || a.knows.Missing == "") {
				s.Units = units(s.Redis) - units(s.Postgres)
			}
		}
	}
	return nil
}

// row is what PostgreSQL has of a subject.
type row struct {
	Name  string
	Units int64
	Limit *int64
}

// rows is what the query finds, in a transaction in which PostgreSQL refuses to write.
func (a *Audit) rows(ctx context.Context, rest string, names []string) (found []row, err error) {
	if a.Postgres == nil {
		return nil, nil
	}
	const all = `SELECT subject::text, coalesce(units, 0)::bigint, (to_jsonb(found) ->> 'limit')::bigint FROM (%s) AS found(subject, units)`
	err = pgx.BeginTxFunc(ctx, a.Postgres, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, fmt.Sprintf(all, a.Query)+rest, // CollectRows returns its error
			pgx.NamedArgs{"policy": a.Policy.Name, "subjects": names, "most": a.Most})
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		return err
	})
	return found, format.Wrapf(err, "read PostgreSQL")
}

// inform asks Redis for its figures, and for how often it has run each command.
func (a *Audit) inform(ctx context.Context) error {
	got, err := a.Redis.EvalRO(ctx, file("info.lua"), nil).Slice()
	for i := 0; i+1 < len(got); i += 2 {
		a.facts[got[i].(string)] = got[i+1].(int64)
	}
	return format.Wrapf(err, "ask Redis what it has run")
}
