// Package exit pairs errors with the exit code that they ask for.
package exit

import (
	"errors"
	"fmt"
)

// Exit codes.
const (
	OK          = 0
	Gate        = 1   // a gate failed, a declared guarantee was broken, or a search found a violation
	Usage       = 2   // the command line or an input file is wrong
	Failed      = 3   // a run failed or its correctness figures are invalid
	Interrupted = 130 // ended by Ctrl-C
)

// Error is an error with its exit code.
type Error struct {
	Code int
	err  error
}

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// With gives an error its exit code, unless it has one. nil stays nil.
func With(code int, err error) error {
	if err == nil || Decided(err) {
		return err
	}
	return &Error{code, err}
}

// Usagef is an error of the command line or of an input file.
func Usagef(format string, args ...any) error { return &Error{Usage, fmt.Errorf(format, args...)} }

// Decided reports whether an error has an exit code.
func Decided(err error) bool {
	return errors.As(err, new(*Error))
}
