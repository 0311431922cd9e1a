package workloads

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/quota"
)

func init() {
	Register(Meta{
		Name: "uploads",
		Doc: "sessions reserve units, then commit, fail or are abandoned, and what was committed is deleted after " +
			"a while",
		Loop:      Closed,
		GivesBack: true,
		Options:   append(crowdOptions(20, "uniform", 0), uploadOptions()...),
		Make:      newUploads,
	})
}

func uploadOptions() []quota.Option {
	mean := func(name, value, doc string) quota.Option {
		return quota.Option{Name: name, Type: "duration", Min: "0s", Max: maxMean.String(), Default: value, Doc: doc}
	}
	return []quota.Option{
		shareOption("fail-share", 0.05, "`share` of admitted requests, 0 to 1, whose work fails, so that they give back"),
		shareOption("abandon-share", 0.02, "`share` of admitted requests, 0 to 1, that are never settled"),
		shareOption("misjudged-share", 0, "`share` of commits, 0 to 1, of half to one and a half times the units reserved"),
		mean("settle", "2ms", "mean `time` from admission to commit or failure, exponentially distributed"),
		mean("hold", "10ms", "mean `time` from commit to deletion, exponentially distributed; 0 deletes nothing"),
	}
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

func newUploads(params Params) (Stream, Info, error) {
	crowd, _, notes, err := newCrowd(params)
	if err != nil {
		return nil, Info{}, err
	}
	fail := params.Options.Float("fail-share")
	abandon := params.Options.Float("abandon-share")
	misjudge := params.Options.Float("misjudged-share")
	if fail+abandon > 1 {
		return nil, Info{}, fmt.Errorf("the shares of failed and abandoned sessions, %v and %v, are more than 1 together",
			fail, abandon)
	}
	settle := params.Options.Duration("settle")
	hold := params.Options.Duration("hold")
	u := &uploads{
		crowd:     *crowd,
		fates:     newStream(params.Seed, seed.Fates),
		sizes:     newStream(params.Seed, seed.Actual),
		settles:   newStream(params.Seed, seed.Settle),
		holds:     newStream(params.Seed, seed.Hold),
		abandoned: share(abandon),
		failed:    share(abandon + fail),
		misjudged: share(misjudge),
		settle:    newExponential(settle),
		hold:      newExponential(hold),
	}
	deleted := "nothing is deleted"
	if hold > 0 {
		deleted = fmt.Sprintf("what they committed is deleted after %v on average", hold)
	}
	notes = append(notes,
		fmt.Sprintf("%.3g %% of the sessions fail and %.3g %% are abandoned; the others commit, %.3g %% of them other "+
			"units than reserved",
			100*fail, 100*abandon, 100*misjudge),
		fmt.Sprintf("sessions settle after %v on average; %s", settle, deleted))
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
