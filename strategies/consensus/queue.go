package consensus

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// The store and the name of queue.
const (
	// NeedNATS is the store of queue; its client is a *nats.Conn.
	NeedNATS strategies.Need = "nats"
	// Queue is the name of the strategy whose code is in package jetstream.
	Queue = "queue"
)

// The values of the option meanwhile of queue.
const (
	MeanwhileWait  = "wait"
	MeanwhileAdmit = "admit"
)

func init() {
	family.Register(files, meta("NATS' client", strategies.Meta{
		Name:    Queue,
		Needs:   []strategies.Need{NeedNATS},
		Options: []quota.Option{{Name: "meanwhile", Default: MeanwhileWait, Values: []string{MeanwhileWait, MeanwhileAdmit}}},
		Guarantee: []quota.Clause{
			// A refund that a caller repeats gives units of others back.
			family.ExactlyUnless("L where callers wait", func(p quota.Params) bool { return p.Options["meanwhile"] == MeanwhileAdmit },
				quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
			family.NoFalseReject(),
		},
	}))
}
