package sliding

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	logScript     = family.Script(files, "log.lua")
	logUsedScript = family.Script(files, "log_used.lua")
	logFillScript = family.Script(files, "log_fill.lua")
)

// mostEntries is the largest cost that is logged: a log has one entry per unit.
const mostEntries = 64

var logMeta = strategies.Meta{
	Name:  "sliding-log",
	About: strategies.About{Core: true},
	Needs: []strategies.Need{strategies.NeedRedis},
	Kinds: []quota.Kind{quota.Rolling},
	Serves: func(policy *quota.Policy) error {
		return family.CostsAtMost(mostEntries, policy, fmt.Sprintf("; at most %d are logged", mostEntries))
	},
	GivesBack: true,
	TwoQuotas: true,
	Options:   []quota.Option{family.Both},
	Counts:    quota.CountsAdmitted,
	Guarantee: []quota.Clause{
		{Property: quota.PropertyLeak, Clock: byRedis,
			Tolerates: append(counted[:len(counted):len(counted)], quota.FaultLimit), Formula: "L", Bound: family.None},
		// What a caller was told to have failed may be in the log.
		{Property: quota.PropertyFalseReject, Clock: byRedis,
			Tolerates: []quota.Fault{quota.FaultClock, quota.FaultRetry, quota.FaultLimit}, Formula: "0", Bound: family.None},
	},
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		base, err := openBase(ctx, env, logScript, logUsedScript, logFillScript)
		return &slidingLog{base, family.Together(env.Options)}, err
	},
}

// slidingLog keeps a log per subject. Entries carry the request's number, so that a
// repeated command changes nothing, and neither does a repeated refund.
type slidingLog struct {
	base
	together bool
}

// Take implements [strategies.Strategy].
func (s *slidingLog) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if req.Units > mostEntries {
		return quota.Decision{}, fmt.Errorf("a request of %d units: at most %d are logged", req.Units, mostEntries)
	}
	decision, err := family.Charge(req, s.together, func(reqs ...quota.Request) (quota.Decision, error) {
		return s.enter(ctx, reqs)
	})
	if decision.Admitted {
		decision.Reservation = quota.Reservation{Request: req}
	}
	return decision, err
}

// enter charges a request to each of the quotas or to none.
func (s *slidingLog) enter(ctx context.Context, reqs []quota.Request) (quota.Decision, error) {
	keys := make([]string, len(reqs))
	args := []any{reqs[0].Units, reqs[0].ID}
	for i, request := range reqs {
		length := request.Policy.Window.RealLength()
		keys[i], args = s.key(request.Subject, request.Policy),
			append(args, micros(length), request.Policy.Limit, lifetime(length))
	}
	return s.answer(ctx, logScript, keys, args...)
}

// Refund implements [strategies.Refunder].
func (s *slidingLog) Refund(ctx context.Context, reservation quota.Reservation) error {
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	entries := make([]any, reservation.Request.Units)
	for i := range entries {
		entries[i] = strconv.FormatUint(reservation.Request.ID, 10) + ":" + strconv.Itoa(i+1)
	}
	var err error
	for _, request := range family.Quotas(reservation.Request) {
		err = errors.Join(err, s.redis.ZRem(ctx, s.key(request.Subject, request.Policy), entries...).Err())
	}
	return family.Wrapf(err, "refunding %d units", reservation.Request.Units)
}

// Used implements [strategies.Viewer].
func (s *slidingLog) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return s.reading(ctx, logUsedScript, []string{s.key(subject, policy)}, micros(policy.Window.RealLength()))
}

// Provision implements [strategies.Provisioner].
func (s *slidingLog) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	return family.ProvisionAlike(ctx, s.redis, policy, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		key := s.key(grant.Subject, policy)
		if grant.Used == 0 {
			pipe.Del(ctx, key)
			return
		}
		logFillScript.EvalSha(ctx, pipe, []string{key}, grant.Used, lifetime(policy.Window.RealLength()))
	})
}
