//go:build !linux

package machine

import "errors"

// RunQueue reads nothing here.
type RunQueue struct{}

// NewRunQueue is an error: this system does not tell how long threads wait.
func NewRunQueue(func() int64, ...int) (*RunQueue, error) {
	return nil, errors.New("read run-queue delays: this system does not tell them")
}

// Sample is empty.
func (*RunQueue) Sample(dst []Wait) []Wait { return dst[:0] }

// Close does nothing.
func (*RunQueue) Close() error { return nil }
