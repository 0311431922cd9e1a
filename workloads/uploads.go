package workloads

import (
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/seed"
	"github.com/quotabench/quotabench/quota"
)

func init() {
	Register(Meta{
		Name:         "uploads",
		Doc:          "sessions reserve units, then commit, fail or are abandoned, and what was committed is deleted after a while",
		Loop:         Closed,
		Kinds:        []quota.Kind{quota.Standing},
		Subjects:     20,
		Popularity:   "uniform",
		GivesBack:    true,
		FailShare:    0.05,
		AbandonShare: 0.02,
		Settle:       2 * time.Millisecond,
		Hold:         10 * time.Millisecond,
		Make:         newUploads,
	})
}

// uploads is a crowd whose requests have fates.
type uploads struct {
	crowd
	fates, sizes, settles, holds stream
	// Below abandoned a session is abandoned, from there to below failed it
	// fails, and otherwise it commits; all as shares of 2^64.
	abandoned, failed threshold
	misjudged         threshold
	settle, hold      exponential
}

var (
	_ Stream    = (*uploads)(nil)
	_ Bounded   = (*uploads)(nil)
	_ Prefilled = (*uploads)(nil)
)

func newUploads(p Params) (Stream, Info, error) {
	c, _, notes, err := newCrowd(p)
	if err != nil {
		return nil, Info{}, err
	}
	u := &uploads{
		crowd:     *c,
		fates:     newStream(p.Seed, seed.Fates),
		sizes:     newStream(p.Seed, seed.Actual),
		settles:   newStream(p.Seed, seed.Settle),
		holds:     newStream(p.Seed, seed.Hold),
		abandoned: share(*p.AbandonShare),
		failed:    share(*p.AbandonShare + *p.FailShare),
		misjudged: share(*p.MisjudgedShare),
		settle:    newExponential(*p.Settle),
		hold:      newExponential(*p.Hold),
	}
	deleted := "nothing is deleted"
	if *p.Hold > 0 {
		deleted = fmt.Sprintf("what they committed is deleted after %v on average", *p.Hold)
	}
	notes = append(notes, fmt.Sprintf("%.3g %% of the sessions fail and %.3g %% are abandoned; the others commit, %.3g %% of them other units than reserved",
		100**p.FailShare, 100**p.AbandonShare, 100**p.MisjudgedShare),
		fmt.Sprintf("sessions settle after %v on average; %s", *p.Settle, deleted))
	return u, Info{Loop: Closed, Notes: notes}, nil
}

func (u *uploads) At(i int64, op *Op) {
	u.crowd.At(i, op)
	n := uint64(i)
	fate := u.fates.at(n)
	if u.abandoned.above(fate) {
		op.Fate = FateAbandon
		return
	}
	op.Settle = u.settle.draw(u.settles.at(n))
	if u.failed.above(fate) {
		op.Fate = FateFail
		return
	}
	op.Fate, op.Actual = FateCommit, u.actual(n, op.Units)
	if u.hold > 0 {
		op.Hold = max(1, u.hold.draw(u.holds.at(n))) // 0 would be never
	}
}

// actual is what a session of the given units commits.
func (u *uploads) actual(i uint64, units int64) int64 {
	if !u.misjudged.above(u.sizes.at(2 * i)) {
		return units
	}
	least := (units + 1) / 2
	most := units + units/2
	return least + int64(below(u.sizes.at(2*i+1), uint64(most-least+1)))
}
