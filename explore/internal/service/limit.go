package service

import (
	"context"
	"errors"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// mostAsked is how many requests of one subject are made to see what the limit of a service is.
const mostAsked = 1000

// checkLimit refuses a service that has a limit of its own, or does not know the subject of a request, unless the limit
// was named: then more than the limit is admitted, or less, and no race is to blame. The control shows it.
func (w *Engine) checkLimit() error {
	stopped := !w.cmd.Clock.IsZero() // when requests that come one after the other come at one instant
	if w.cmd.Known || w.cmd.LimitNamed || stopped {
		return nil
	}
	truth := &w.Run.Truth
	if truth.Events()[0].Outcome == oracle.Rejected {
		return unfit("the service rejects the first request of a new subject: name the path that has the subject by " +
			"--request '/path?user={subject}', or its header by http:subject-header=NAME")
	}
	limit := w.Setup.Policy.Limit
	if truth.Peak <= limit {
		return nil
	}
	admitted, err := w.admits()
	if err != nil || admitted <= limit { // instances count each for itself
		return err
	}
	follows, err := w.followsLimit(admitted)
	switch {
	case err != nil:
		return err
	case follows:
		return w.startAll()
	}
	if admitted == mostAsked {
		return unfit("the service rejects none of %d requests of one subject that come one after the other, although LIMIT "+
			"is %d: name its limit by --limit, and what has the subject by --request '/path?user={subject}', or "+
			"http:subject-header=NAME", mostAsked, limit)
	}
	return unfit("the service does not read LIMIT: it is %d, and the service admits %d requests of one subject that come "+
		"one after the other: add --limit %d", limit, admitted, admitted)
}

// followsLimit reports whether the service admits another number of requests if LIMIT is another.
func (w *Engine) followsLimit(admitted int64) (bool, error) {
	w.Setup.Policy.Limit++
	defer func() { w.Setup.Policy.Limit-- }()
	first := w.instances[0]
	if err := errors.Join(first.end(), w.startAll()); err != nil {
		return false, err
	}
	other, err := w.admits()
	return other != admitted, errors.Join(err, first.end())
}

// admits is how many requests of a new subject the first instance admits, one after the other, before it rejects one.
func (w *Engine) admits() (admitted int64, err error) {
	request := quota.Request{Subject: w.newSubject(), Policy: &w.Setup.Policy, Units: 1}
	for admitted < mostAsked {
		ctx, cancel := context.WithTimeout(w.base, w.Setup.Patience)
		decision, err := w.instances[0].strategy.Take(ctx, request)
		cancel()
		if err != nil || !decision.Admitted {
			return admitted, err
		}
		admitted++
	}
	return admitted, nil
}
