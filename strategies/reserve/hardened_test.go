package reserve

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// ledgerOf opens lua-reserve-hardened with one tenant who has used so much.
func ledgerOf(t *testing.T, env strategies.Env, used int64) *hardened {
	t.Helper()
	s, err := hardenedMeta.Open(t.Context(), env)
	must(t, err)
	must(t, s.(*hardened).Provision(t.Context(), uploads, []strategies.Grant{{Subject: "t1", Limit: 1000, Used: used}}))
	return s.(*hardened)
}

var t1 = tenant{uploads.Name, "t1"}

// upload takes units that the caller is going to settle.
func upload(t *testing.T, s strategies.Strategy, units int64, admitted bool) quota.Reservation {
	t.Helper()
	lastID++
	req := quota.Request{ID: lastID, Subject: "t1", Policy: uploads, Units: units, Settles: true, Life: 15 * 60e9}
	d, err := s.Take(t.Context(), req)
	must(t, err)
	if d.Admitted != admitted {
		t.Fatalf("%d MB: %+v, want admitted %v", units, d, admitted)
	}
	return d.Reservation
}

// reconciled runs the sync and returns whether it changed anything.
func reconciled(t *testing.T, s *hardened) bool {
	t.Helper()
	changed, err := s.sync(t.Context())
	must(t, err)
	return changed
}

// end has the reservation's life be over, long ago.
func end(t *testing.T, s *hardened, r quota.Reservation) {
	t.Helper()
	must(t, s.redis.ZAdd(t.Context(), s.keys.of(t1)[1], redis.Z{Score: 1, Member: fileOf(r).id}).Err())
}

// TestHardenedRepeats: a request, a commit and a refund that come again change
// nothing, in whatever order.
func TestHardenedRepeats(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := ledgerOf(t, env, 100)
		a := upload(t, s, 600, true)
		if d, err := s.Take(t.Context(), a.Request); err != nil || !d.Admitted || d.Remaining != 300 {
			t.Errorf("the same request again: %+v and %v", d, err)
		}
		used(t, s, 700)
		for range 2 {
			must(t, s.Commit(t.Context(), a, 500))
			used(t, s, 600)
		}
		b := upload(t, s, 400, true)
		for range 2 {
			must(t, s.Refund(t.Context(), b)) // which failed
			used(t, s, 600)
		}
		a.Committed = true
		a.Request.Units = 500
		for range 2 {
			must(t, s.Refund(t.Context(), a)) // which is deleted
			used(t, s, 100)
		}
		if err := s.Commit(t.Context(), b, 400); !errors.Is(err, errEnded) {
			t.Errorf("committing what was given back: %v", err)
		}
		used(t, s, 100)
		if reconciled(t, s) {
			t.Error("the sync found something to put right")
		}
		for _, settle := range []error{s.Refund(t.Context(), quota.Reservation{}),
			s.Commit(t.Context(), quota.Reservation{}, 1)} {
			if !errors.Is(settle, family.ErrNoReservation) {
				t.Errorf("settling no reservation: %v", settle)
			}
		}
	})
}

// TestHardenedOverrun: what is stored counts at its own size at once, also if
// that is more than was reserved.
func TestHardenedOverrun(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := ledgerOf(t, env, 0)
		a := upload(t, s, 500, true)
		b := upload(t, s, 500, true)
		must(t, s.Commit(t.Context(), a, 700))
		used(t, s, 1200)
		must(t, s.Refund(t.Context(), b))
		used(t, s, 700)
		upload(t, s, 301, false)
		upload(t, s, 300, true)
	})
}

// TestHardenedAbandoned: an upload whose client is gone holds its units until its
// end, and a request that needs them gets them afterwards. It cannot be committed
// any more.
func TestHardenedAbandoned(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := ledgerOf(t, env, 100)
		a := upload(t, s, 600, true)
		kept := upload(t, s, 200, true)
		upload(t, s, 150, false)
		end(t, s, a)
		used(t, s, 300)
		upload(t, s, 700, true)
		if err := s.Commit(t.Context(), a, 600); !errors.Is(err, errEnded) {
			t.Errorf("committing after the end: %v", err)
		}
		used(t, s, 1000)
		must(t, s.Commit(t.Context(), kept, 200))
		used(t, s, 1000)
	})
}

// TestHardenedDiesCommitting: a caller dies when its file is stored and Redis has
// not heard of it. The units stay held, also past the reservation's end, and the
// sync makes a file of them.
func TestHardenedDiesCommitting(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := ledgerOf(t, env, 100)
		a := upload(t, s, 600, true)
		b := upload(t, s, 300, true)
		_, err := s.files.keep(t.Context(), fileOf(a), 500)
		must(t, err)
		end(t, s, a)
		upload(t, s, 200, false) // 100 are free now that the file turns out smaller
		used(t, s, 900)
		must(t, s.Commit(t.Context(), b, 300))
		if reconciled(t, s) {
			t.Error("the rejected request has left something to the sync")
		}
		upload(t, s, 100, true)
		used(t, s, 1000)
	})
}

// TestHardenedDiesDeleting: a caller dies when a file is deleted and Redis has not
// heard of it, nor of its having been stored.
func TestHardenedDiesDeleting(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := ledgerOf(t, env, 100)
		a := upload(t, s, 400, true)
		b := upload(t, s, 300, true)
		for _, r := range []quota.Reservation{a, b} {
			_, err := s.files.keep(t.Context(), fileOf(r), 200)
			must(t, err)
		}
		_, err := s.files.drop(t.Context(), fileOf(b))
		must(t, err)
		must(t, s.Refund(t.Context(), a)) // the second change of its file, of which the first is missing
		used(t, s, 400)
		if !reconciled(t, s) {
			t.Error("the sync has found nothing")
		}
		used(t, s, 100)
		if reconciled(t, s) {
			t.Error("the sync has found something again")
		}
	})
}

// TestHardenedChangesInAnyOrder: changes reach Redis late, twice and out of order,
// and each counts once.
func TestHardenedChangesInAnyOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := ledgerOf(t, env, 0)
		var changes []change
		for range 4 {
			c, err := s.files.keep(t.Context(), fileOf(upload(t, s, 200, true)), 150)
			must(t, err)
			changes = append(changes, c)
		}
		for i, n := range []int{2, 0, 2, 3, 0, 1, 1} {
			_, err := s.apply(t.Context(), t1, account{}, changes[n])
			must(t, err)
			used(t, s, []int64{750, 700, 700, 650, 650, 600, 600}[i])
		}
		fields := s.redis.HGetAll(t.Context(), s.keys.of(t1)[0]).Val()
		if fields["version"] != "4" || fields["stored"] != "600" || fields["held"] != "0" || len(fields) != 6 {
			t.Errorf("the ledger is %v, want version 4, 600 units stored and nothing else", fields)
		}
	})
}

// TestHardenedRestores: a Redis that has lost its data gets the limit back, too,
// and what is stored. What was under way is not known any more.
func TestHardenedRestores(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		for _, bySync := range []bool{true, false} {
			s := ledgerOf(t, env, 100)
			must(t, s.Commit(t.Context(), upload(t, s, 200, true), 200))
			open := upload(t, s, 500, true)
			must(t, s.redis.Del(t.Context(), s.keys.of(t1)...).Err())
			if bySync && !reconciled(t, s) {
				t.Error("the sync has not found that the ledger is gone")
			}
			upload(t, s, 701, false)
			used(t, s, 300)
			must(t, s.Commit(t.Context(), open, 500))
			used(t, s, 800)
		}
		if d, err := ledgerOf(t, env, 0).Take(t.Context(),
			quota.Request{ID: 1, Subject: "stranger", Policy: uploads, Units: 1}); err != nil || d.Admitted {
			t.Errorf("a tenant that the database lacks: %+v and %v", d, err)
		}
	})
}

// TestHardenedLimit: a limit that is set while Redis is told of an older one stays.
func TestHardenedLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := ledgerOf(t, env, 0)
		old, _, err := s.files.account(t.Context(), t1)
		must(t, err)
		must(t, s.Provision(t.Context(), uploads, []strategies.Grant{{Subject: "t1", Limit: 50, Used: 20}}))
		_, err = s.apply(t.Context(), t1, old)
		must(t, err)
		upload(t, s, 31, false)
		upload(t, s, 30, true)
	})
}

// lossy loses the answers to the first commands of a name, after they have taken
// effect.
type lossy struct {
	betweenGetAndSet // for its other hooks
	name             string
	times            int
}

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if l.times > 0 && strings.HasPrefix(cmd.Name(), l.name) {
			l.times--
			err = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
			cmd.SetErr(err)
		}
		return err
	}
}

// TestHardenedLostReply: one lost answer is asked for again, two are an error, and
// neither counts twice.
func TestHardenedLostReply(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		c := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
		t.Cleanup(func() { closing(t, c) })
		env.Clients = maps.Clone(env.Clients)
		env.Clients["redis"] = c
		s := ledgerOf(t, env, 0)
		l := &lossy{name: "eval"}
		c.AddHook(l)
		l.times = 1
		a := upload(t, s, 400, true)
		used(t, s, 400)
		l.times = 1
		must(t, s.Commit(t.Context(), a, 300))
		used(t, s, 300)
		l.times = 2
		if err := s.Refund(t.Context(), a); err == nil {
			t.Error("without an answer a refund is said to be done")
		}
		must(t, s.Refund(t.Context(), a))
		used(t, s, 0)
		if m := s.Measures(); len(m) != 1 || m[0].Value != 3 {
			t.Errorf("measures %+v, want 3 commands repeated", m)
		}
	})
}

// TestHardenedUnderLoad: callers upload, fail, delete and do all of it twice, and
// some die while they do it, while the sync runs all the time. As much is left
// in Redis as in the database.
func TestHardenedUnderLoad(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := ledgerOf(t, env, 0)
		stop := make(chan struct{})
		var syncing, callers sync.WaitGroup
		syncing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := s.sync(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
		for w := range 6 {
			callers.Go(func() {
				for i := range 20 {
					if err := s.session(t.Context(), uint64(1000*w+i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		callers.Wait()
		close(stop)
		syncing.Wait()
		reconciled(t, s)
		a, _, err := s.files.account(t.Context(), t1)
		must(t, err)
		used(t, s, a.stored-a.deleted)
		if a.stored == a.deleted || a.deleted == 0 {
			t.Errorf("%+v: this has tested nothing", a)
		}
		if fields := s.redis.HGetAll(t.Context(), s.keys.of(t1)[0]).Val(); fields["held"] != "0" ||
			fields["version"] != strconv.FormatInt(a.version, 10) {
			t.Errorf("the ledger is %v, and the database %+v", fields, a)
		}
	})
}

// session is one upload of the number's own fate.
func (s *hardened) session(ctx context.Context, id uint64) error {
	req := quota.Request{ID: id, Subject: "t1", Policy: uploads, Units: 100, Settles: true, Life: 15 * 60e9}
	d, err := s.Take(ctx, req)
	if err != nil || !d.Admitted {
		return err
	}
	r := d.Reservation
	switch id % 4 {
	case 0: // stays, and its caller dies before Redis hears of it
		_, err = s.files.keep(ctx, fileOf(r), 10)
	case 1:
		err = errors.Join(s.Refund(ctx, r), s.Refund(ctx, r))
	case 2: // is deleted, of which Redis does not hear
		err = s.Commit(ctx, r, 80)
		if err == nil {
			_, err = s.files.drop(ctx, fileOf(r))
		}
	case 3:
		err = errors.Join(s.Commit(ctx, r, 120), s.Commit(ctx, r, 120), s.Refund(ctx, r), s.Refund(ctx, r))
	}
	return err
}

// TestHardenedOneSlot: a cluster keeps all keys of a tenant in one place, and those
// of two tenants apart.
func TestHardenedOneSlot(t *testing.T) {
	tag := func(key string) string {
		_, rest, _ := strings.Cut(key, "{")
		tag, _, ok := strings.Cut(rest, "}")
		if !ok || tag == "" {
			t.Errorf("key %s has no hash tag", key)
		}
		return tag
	}
	k := ledgerKeys{"quotabench:1:quota:{"}
	tags := map[string]bool{}
	for _, subject := range []quota.Subject{"t1", "t2", "{a", "b}", ""} {
		keys := k.of(tenant{uploads.Name, subject})
		if len(keys) != 2 || tag(keys[0]) != tag(keys[1]) {
			t.Errorf("%q: keys %q are not in one slot", subject, keys)
		}
		tags[tag(keys[0])] = true
	}
	if len(tags) != 5 {
		t.Errorf("5 tenants have the tags %v", tags)
	}
}
