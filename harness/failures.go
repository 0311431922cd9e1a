package harness

import (
	"cmp"
	"errors"

	"github.com/quotabench/quotabench/internal/killed"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// Failures counts requests that ended in an error.
type Failures struct {
	// Errors by what they came from.
	Errors results.ErrorKinds
	// Prescribed are those among them that the strategy's source asks for.
	Prescribed results.ErrorKinds
	// Suspect is the first that is not a result of the strategy's.
	Suspect error
}

// Count counts the error of a request.
func (f *Failures) Count(err error) {
	kind := errorKind(err)
	*f.Errors.Of(kind)++
	switch {
	case strategies.IsPrescribed(err):
		*f.Prescribed.Of(kind)++
	case kind != quota.ErrorContention && kind != errorKilled && f.Suspect == nil:
		f.Suspect = err
	}
}

// Add counts those of o too.
func (f *Failures) Add(o Failures) {
	f.Errors.Add(o.Errors)
	f.Prescribed.Add(o.Prescribed)
	f.Suspect = cmp.Or(f.Suspect, o.Suspect)
}

// errorKilled is the kind of [results.ErrorKinds.Killed].
const errorKilled quota.ErrorKind = "killed"

// errorKind says what an error of a request came from: by the word of the strategy,
// and else by what the stores know.
func errorKind(err error) quota.ErrorKind {
	switch {
	case errors.Is(err, killed.Err):
		return errorKilled
	case errors.Is(err, strategies.ErrContention):
		return quota.ErrorContention
	}
	return stores.ErrorKind(err)
}
