package results

import "github.com/quotabench/quotabench/quota"

// ErrorKinds counts requests without a decision by what kept them from one.
type ErrorKinds struct {
	// Contention: others changed the same in the meantime.
	Contention int64 `json:"contention"`
	// TimeOuts: there was no answer in the time that was given.
	TimeOuts int64 `json:"time_outs"`
	// Store: the store was not there, or refused what any client may ask of it.
	Store int64 `json:"store"`
	// Other errors.
	Other int64 `json:"other"`
}

// Of is the count of one kind.
func (k *ErrorKinds) Of(kind quota.ErrorKind) *int64 {
	switch kind {
	case quota.ErrorContention:
		return &k.Contention
	case quota.ErrorTimeout:
		return &k.TimeOuts
	case quota.ErrorStore:
		return &k.Store
	}
	return &k.Other
}

// Add counts those of o too.
func (k *ErrorKinds) Add(o ErrorKinds) {
	k.Contention += o.Contention
	k.TimeOuts += o.TimeOuts
	k.Store += o.Store
	k.Other += o.Other
}

// Total counts all of them.
func (k ErrorKinds) Total() int64 { return k.Contention + k.TimeOuts + k.Store + k.Other }

// OrNil is nil if nothing was counted.
func (k ErrorKinds) OrNil() *ErrorKinds {
	if k.Total() == 0 {
		return nil
	}
	return &k
}
