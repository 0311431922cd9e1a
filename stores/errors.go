package stores

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// errorRanks orders kinds: of an error that joins several the last one counts.
var errorRanks = []quota.ErrorKind{"", quota.ErrorContention, quota.ErrorTimeout, quota.ErrorStore}

// ErrorKind says what an error came from that a client of a store returned: drivers
// know those of their servers and clients, and connections are the same for all.
func ErrorKind(err error) quota.ErrorKind {
	rank := connectionError(err)
	for _, d := range drivers {
		if d.ErrorKind != nil {
			rank = max(rank, slices.Index(errorRanks, d.ErrorKind(err)))
		}
	}
	if rank <= 0 {
		return quota.ErrorOther
	}
	return errorRanks[rank]
}

// connectionError is the rank of what becomes of connections and deadlines: the highest
// of all that the error wraps.
func connectionError(err error) (rank int) {
	switch e := err.(type) { //nolint:errorlint // what it wraps is looked at below
	case net.Error: // a context's deadline is one, too
		if e.Timeout() {
			return slices.Index(errorRanks, quota.ErrorTimeout)
		}
		return slices.Index(errorRanks, quota.ErrorStore)
	case interface{ Unwrap() error }:
		return connectionError(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			rank = max(rank, connectionError(part))
		}
		return rank
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return slices.Index(errorRanks, quota.ErrorStore)
	}
	return 0
}
