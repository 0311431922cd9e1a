package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/cancel"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// history is a finished run's history. [oracle.History] and an opened file of one
// are two.
type history interface {
	// Judge works out the verdict, and shows visitors each subject's events in the
	// same pass.
	Judge(cfg oracle.Config, visit ...oracle.Visitor) (oracle.Verdict, error)
	// Subjects passes each subject's events, ordered by call, in the order of their
	// numbers. The slice is valid until the next one.
	Subjects() iter.Seq2[[]oracle.Event, error]
}

// Facts are what a runner knows of a finished run in addition to its history.
type Facts struct {
	Plan      *Plan
	Selection strategies.Selection
	// Policy with the windows as they were in the run.
	Policy *quota.Policy
	// Epoch is the moment of nanosecond 0 of the history.
	Epoch time.Time
	// Initial is what a subject had used at the epoch, in units.
	Initial func(subject uint32) int64
	History history
	// Cells are the online counters, to be checked against the history; nil if none
	// were kept.
	Cells iter.Seq2[oracle.Key, *oracle.Cell]

	// Counts are the callers' own.
	Counts Counts
	// Partial is set if the run was interrupted.
	Partial bool
	// Instances in all, and how far each one's clock was ahead; nil is not at all.
	Instances int
	Skews     []time.Duration
	// SkewFrom is since when, in nanoseconds since the epoch, if they are held against a right clock, too, and not against
	// each other alone; nil is always.
	SkewFrom []int64
	// StoresApart is set if instances of different regions count in different
	// stores, of which no guarantee speaks.
	StoresApart bool
	// Outages as they happened. Grace is for how many nanoseconds after one
	// connections that broke may still be found.
	Outages []results.Span
	Grace   int64
	// Restarts of instances, which lose their memory and end the calls within them, in nanoseconds
	// since the epoch. Pause is how long one stood still at most.
	Restarts []int64
	Pause    time.Duration
	// Evicts is set if a store was started so as to evict keys.
	Evicts bool
	// Noticed is what happened to stores that was not planned.
	Noticed []Notice
	// Changed are the subjects whose counters somebody else changed: a finding about the store, and not about them, tells.
	Changed []uint32
	// Unwatched is set if a store of the run could have stopped to answer without
	// being noticed: then a time-out may be its failure.
	Unwatched bool
	// LimitChanges as they happened, in nanoseconds since the epoch.
	LimitChanges []oracle.LimitChange
	// Overwritten counts the values that an event of [trouble.Tamper] changed.
	Overwritten int64
	// ClockAhead is how far the clock of this process is ahead of that of its [Peers], and ClockWrong
	// by how much that may be wrong.
	ClockAhead, ClockWrong time.Duration
	// Apart is by how much the clocks of processes certainly differ that windows do not follow.
	Apart time.Duration
	// SyncPeriod is the achieved one; see [Session.AchievedPeriod].
	SyncPeriod time.Duration
	// Readings of the counters at rest, and once more after jobs have run.
	Readings []Readings
	// FailedRounds of background jobs, and the first one's error.
	FailedRounds int64
	JobError     error
	// Tiers are the names of tiers by their number in events.
	Tiers []string
	// TiersFolded counts decisions of tiers beyond those that the run could tell
	// apart, which stand under no name.
	TiersFolded int64
}

// Readings are counters read in one go.
type Readings struct {
	// At is "rest" or "after-jobs".
	At string
	// SettledNS is how long jobs took to become idle.
	SettledNS int64
	List      []Reading
}

// When counters are read.
const (
	AtRest    = "rest"
	AfterJobs = "after-jobs"
)

// visitor is shown each subject's events once, ordered by call.
type visitor = func(events []oracle.Event)

// ErrNotJudged is the error of a judgement that was given up.
var ErrNotJudged = errors.New("the run was not judged")

// Judge turns a finished run into its correctness figures: leak, false rejects,
// drift, guarantees, and the audit's findings on all of them. Timings and costs
// are the runner's. Visitors see the history in the same pass. An error means that
// the history could not be read.
//
// It is given up with [ErrNotJudged] when ctx is done: the run is
// then partial, has an audit that says so, and is otherwise as it was. The judgement
// goes on by itself, with what visitors look at, and closes the history in the end.
func Judge(ctx context.Context, run *results.Run, facts *Facts, visitors ...visitor) (oracle.Verdict, error) {
	own := *run
	own.Audit.Reasons = slices.Clone(run.Audit.Reasons)
	own.Guarantee = slices.Clone(run.Guarantee)
	type judged struct {
		verdict oracle.Verdict
		run     results.Run
	}
	abandoned := make(chan bool, 1)
	result, err := cancel.Call(ctx, func() (judged, error) {
		found, err := judge(&own, facts, ctx.Err, visitors)
		go func() {
			if closer, ok := facts.History.(io.Closer); ok && <-abandoned {
				_ = closer.Close() // its file is of no use to anyone
			}
		}()
		return judged{found, own}, err
	})
	givenUp := ctx.Err() != nil && errors.Is(err, ctx.Err())
	abandoned <- givenUp
	if givenUp {
		notJudged(run, facts)
		return oracle.Verdict{}, ErrNotJudged
	}
	if err == nil {
		*run = result.run
	}
	return result.verdict, err
}

// notJudged says of a run that its judgement was given up.
func notJudged(run *results.Run, facts *Facts) {
	facts.Counts.record(run)
	run.Partial = true
	run.Audit.Discard("not-judged", codes.DiscardsCorrectness, fmt.Sprintf(
		"the run was ended, and its %s requests could not be judged within %v: leak, false rejects and drift are unknown",
		format.Count(run.Issued), judgeGrace))
}

// judgeGrace is how long the judgement of a run may go on after the context ended that
// the run was started with.
const judgeGrace = 700 * time.Millisecond

// Judging is a context for what follows a run: it ends [judgeGrace] after ctx does.
// The function that it returns frees it.
func Judging(ctx context.Context) (context.Context, context.CancelFunc) {
	judging, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(judgeGrace, end) })
	return judging, func() {
		stop()
		end()
	}
}

// judge is what [Judge] does. It asks before each subject whether to go on.
func judge(run *results.Run, facts *Facts, goOn func() error, visitors []visitor) (oracle.Verdict, error) {
	judgement := newJudgement(run, facts)
	judgement.callers()
	if err := judgement.judgeHistory(goOn, visitors); err != nil {
		return *judgement.verdict, err
	}
	judgement.figures()
	if err := judgement.clauses(); err != nil {
		return *judgement.verdict, err
	}
	judgement.findings()
	if err := goOn(); err != nil {
		return *judgement.verdict, err
	}
	judgement.keep(judgement.initial)
	return *judgement.verdict, nil
}

// judgement is what is worked out about one run.
type judgement struct {
	*Facts
	run     *results.Run
	cfg     oracle.Config
	verdict *oracle.Verdict
	drift   *driftFinder
	// ofSecond are the verdicts on the second quota, if there is one: by the clock of the stores, and by those of the
	// instances.
	ofSecond struct{ stores, own *oracle.Verdict }
	// initial is what subjects with events had used at the epoch, for the archive.
	initial map[uint32]int64
	planned int64 // errors of takes that an outage explains
	asked   int64 // the most units that one subject was asked for, decided or not
	// recovered is, for each outage, the time from its end to the first answer that the store decided; 0 if there was
	// none.
	recovered []int64
}

func newJudgement(run *results.Run, facts *Facts) *judgement {
	cfg := oracle.Config{
		Window: facts.Policy.Window, Limit: facts.Policy.Limit, Changes: facts.LimitChanges,
		Initial: facts.Initial, Epoch: facts.Epoch,
		Brief: facts.Cells == nil, Span: 2 * facts.SyncPeriod,
	}
	if facts.Plan.Second != nil {
		cfg.Below = secondFrom
	}
	return &judgement{
		Facts: facts, run: run, cfg: cfg, verdict: &oracle.Verdict{}, drift: newDrift(facts, cfg),
		initial: map[uint32]int64{}, recovered: make([]int64, len(facts.Outages)),
	}
}

// callers sets what callers counted themselves.
func (j *judgement) callers() {
	j.Counts.record(j.run)
	j.run.Partial = j.Partial
	if err := j.Counts.FirstError; err != nil {
		j.run.FirstError = format.OneLine(err.Error())
		j.run.FirstErrorCode = redisCode(err)
	}
}

// redisError is an error that Redis has answered with, whatever its client wraps around it.
type redisError interface {
	error
	RedisError()
}

// redisCode is the word that an error of Redis begins with by its protocol; empty for other errors.
func redisCode(err error) string {
	answer, ok := errors.AsType[redisError](err)
	if !ok {
		return ""
	}
	code, _, _ := strings.Cut(answer.Error(), " ")
	if code != strings.ToUpper(code) {
		return "" // the client's own, such as redis.Nil
	}
	return code
}

// judgeHistory works out the verdict, and shows each subject's events to all that need them.
func (j *judgement) judgeHistory(goOn func() error, visitors []visitor) error {
	if j.Plan.Archive != "" && j.Initial != nil {
		visitors = append(slices.Clip(visitors), j.seeInitial)
	}
	judged, second, err := j.judgeBoth(j.History.Judge, func(events []oracle.Event) error {
		if err := goOn(); err != nil {
			return err
		}
		return j.ofSubject(events, visitors)
	})
	j.verdict = &judged
	j.ofSecond.stores = &second
	j.ofSecond.own = &second
	if err != nil {
		return fmt.Errorf("judge the history: %w", err)
	}
	return nil
}

func (j *judgement) seeInitial(events []oracle.Event) {
	subject := events[0].Subject
	if used := j.Initial(subject); used != 0 {
		j.initial[subject] = used
	}
}

// figures sets what follows from the verdict and from the counters at rest.
func (j *judgement) figures() {
	j.run.Outages = j.Outages
	j.run.RecoveredNS = slices.Max(append(j.recovered, 0))
	correctness(j.run, j.verdict, j.Policy)
	byTier(j.run, j.verdict, j.Tiers)
	j.run.Drift = j.drift.result()
}

// clauses judges what the strategy declares.
func (j *judgement) clauses() error {
	rolling, err := j.rolling()
	if err != nil {
		return err
	}
	own, err := j.ownClocks()
	if err != nil {
		return err
	}
	others, err := j.others()
	if err != nil {
		return err
	}
	j.guarantee(own, rolling, others)
	return nil
}

// findings judges the second quota, and audits the run. If several processes drive the load, who joins their runs
// does that.
func (j *judgement) findings() {
	if j.Plan.Peers != nil {
		j.leaveToPeers()
		return
	}
	j.second()
	j.audit()
}

// correctness sets the run's leak and false rejects.
func correctness(run *results.Run, judged *oracle.Verdict, policy *quota.Policy) {
	leak := &run.Leak
	rejects := &run.FalseRejects
	leak.Units = judged.LeakUnits
	leak.Possible = judged.LeakPossible
	leak.WorstUnits = judged.LeakWorst
	leak.Subjects = judged.LeakSubjects
	leak.LeakedTrials = judged.LeakWindows
	leak.Excursions = judged.Standing.Excursions
	leak.UnitSeconds = judged.Standing.UnitSeconds
	leak.Trials = judged.Crossings
	leak.OverQuotaUnits = judged.OverOffered
	leak.Requests = judged.LeakedRequests
	if judged.Crossings > 0 {
		leak.PctOfLimit = 100 * float64(judged.LeakUnits) / (float64(policy.Limit) * float64(judged.Crossings))
		leak.MedianUnits = stat.Median(judged.CrossingLeaks)
	}
	if judged.OverOffered > 0 {
		leak.PctOfOverQuota = 100 * float64(judged.LeakUnits) / float64(judged.OverOffered)
	}
	rejects.Count = judged.FalseRejects
	rejects.Possible = judged.FalseRejectsPossible
	rejects.Units = judged.FalseRejectUnits
	rejects.LongestNS = judged.LongestWrong
	if n := judged.FalseRejects + judged.Admitted.Requests - judged.LeakedRequests; n > 0 {
		rejects.PctOfValid = 100 * float64(judged.FalseRejects) / float64(n)
	}
	rejects.Explained = judged.Explained()
	if policy.Window.Kind.Tumbling() || policy.Window.Kind == quota.Rolling {
		rejects.NeverGiven = new(judged.NeverGiven)
	}
	if settlement := run.Settlement; settlement != nil {
		settlement.OverrunUnits = judged.Overrun
	}
}

// byTier sets what tiers did, by their names. One that let nothing through leaks 0.
func byTier(run *results.Run, judged *oracle.Verdict, names []string) {
	run.LeakTiers = map[string]int64{}
	for i, name := range names {
		if name != "" {
			run.LeakTiers[name] = judged.LeakTiers[uint8(i)]
		}
		if i == int(judged.LongestTier) && judged.LongestWrong > 0 {
			run.FalseRejects.LongestTier = name
		}
	}
}

// ofSubject judges one subject's events: what it asked for, its errors that were planned, and its drift. Then the
// visitors look.
func (j *judgement) ofSubject(events []oracle.Event, visitors []visitor) error {
	j.takes(events)
	if err := j.drift.subject(events); err != nil {
		return err
	}
	for _, visit := range visitors {
		visit(events)
	}
	return nil
}

// takes adds up what one subject asked for, and which of its errors an outage or a restart explains.
func (j *judgement) takes(events []oracle.Event) {
	asked := int64(0)
	for i := range events {
		event := &events[i]
		if event.Kind != oracle.Take {
			continue
		}
		asked += event.Units
		for k := range j.Outages {
			j.away(k, event)
		}
		if event.Outcome == oracle.Failed && j.explained(event) {
			j.planned++
		}
	}
	j.asked = max(j.asked, asked)
}

func (j *judgement) explained(event *oracle.Event) bool {
	return slices.ContainsFunc(j.Outages, func(span results.Span) bool {
		return explains(span, event, j.Grace)
	}) || slices.Contains(j.Restarts, event.Reply)
}

// rolling judges the run once more, as if its windows were rolling ones of the
// same length, if one of them ended in mid-run: what a burst around the
// boundary gets is invisible to either window alone. It returns nil otherwise.
func (j *judgement) rolling() (*oracle.Verdict, error) {
	if !j.Plan.Workload.Boundary || !j.cfg.Window.Kind.Tumbling() {
		return nil, nil
	}
	cfg := j.cfg
	cfg.Window = verdict.RollingWindow(j.cfg.Window, j.Epoch)
	rolled, err := j.History.Judge(cfg)
	if err != nil {
		return nil, fmt.Errorf("judge the history with rolling windows: %w", err)
	}
	worst := min(j.cfg.Limit, rolled.Admitted.Units)
	if rolled.LeakWorst > 0 {
		worst = j.cfg.Limit + rolled.LeakWorst
	}
	j.run.Rolling = &results.Rolling{
		WorstUnits: worst, Multiple: float64(worst) / float64(j.cfg.Limit),
		Units: rolled.LeakUnits, Possible: rolled.LeakPossible,
	}
	return &rolled, nil
}

// others judges the subjects whose counters nobody else changed; nil if there are no others. What these show is the
// strategy's own.
func (j *judgement) others() (*oracle.Verdict, error) {
	elsewhere := func(notice Notice) bool { return notice.Code != "store-changed" }
	if len(j.Changed) == 0 || j.skew() != 0 || slices.ContainsFunc(j.Noticed, elsewhere) {
		return nil, nil
	}
	subjects := func(yield func([]oracle.Event, error) bool) {
		for events, err := range j.History.Subjects() {
			if err == nil && slices.Contains(j.Changed, events[0].Subject) {
				continue
			}
			if !yield(events, err) {
				return
			}
		}
	}
	judged, err := oracle.JudgeSubjects(j.cfg, j.run.ElapsedNS, subjects)
	if err != nil {
		return nil, fmt.Errorf("judge the subjects whose counters nobody else changed: %w", err)
	}
	return &judged, nil
}

// ownClocks judges the run with every request at the moment that its instance's
// clock showed, which decides what window it belongs to for the strategy. It
// returns the verdict itself if all clocks agree.
func (j *judgement) ownClocks() (*oracle.Verdict, error) {
	skew := j.skew()
	if skew == 0 {
		return j.verdict, nil
	}
	own, second, err := j.judgeBoth(func(config oracle.Config, _ ...oracle.Visitor) (oracle.Verdict, error) {
		return oracle.JudgeSubjects(config, j.run.ElapsedNS, j.shifted())
	})
	if err != nil {
		return nil, fmt.Errorf("judge the history by the instances' clocks: %w", err)
	}
	j.ofSecond.own = &second
	differ := fmt.Sprintf("instances' clocks differ by up to %v", skew)
	follows := fmt.Sprintf("by their own clocks, the leak is %s, and false rejects are %d",
		format.Units(own.LeakUnits, "units"), own.FalseRejects)
	j.run.Audit.Observe(codes.ClocksDiffer, codes.DiscardsNothing, differ, follows)
	return &own, nil
}

// shifted are the subjects' events as the clocks of their instances showed them.
func (j *judgement) shifted() iter.Seq2[[]oracle.Event, error] {
	return func(yield func([]oracle.Event, error) bool) {
		var out []oracle.Event
		for events, err := range j.History.Subjects() {
			out = append(out[:0], events...)
			verdict.ByOwnClocks(out, j.Skews, j.SkewFrom)
			slices.SortStableFunc(out, func(a, b oracle.Event) int { return cmp.Compare(a.Call, b.Call) })
			if !yield(out, err) {
				return
			}
		}
	}
}

// skew is the largest difference between two clocks.
func (j *judgement) skew() time.Duration {
	if j.SkewFrom != nil {
		return verdict.MaxSkew(append(slices.Clip(j.Skews), 0), j.Instances+1)
	}
	return verdict.MaxSkew(j.Skews, j.Instances)
}
