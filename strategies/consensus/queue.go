package consensus

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
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
	admits := func(p quota.Params) bool { return p.Options["meanwhile"] == MeanwhileAdmit }
	strategies.Register(strategies.Meta{
		Name:   Queue,
		Source: "ADR-RM-3",
		Doc:    "requests go through a JetStream stream, and one consumer decides them in order",
		Notes: strategies.Notes{
			How: []string{
				"A request is appended to a stream in NATS, on disk.",
				"One consumer, in the first instance, reads the stream in order and keeps the counters in its memory.",
				"It sends each decision to the instance that asked.",
				"The caller waits for its decision (meanwhile=wait), or continues as soon as the request is in the stream (meanwhile=admit).",
				"With meanwhile=admit, an instance waits again once it knows that a subject has nothing left.",
			},
			Deviations: []string{
				"The record rejects queues because the client does not know at once; what it does meanwhile is an option here.",
				"A consumer that starts reads the whole stream, which nothing shortens.",
			},
			Use:   "Use it if decisions need a log in their order, and requests can wait or be undone.",
			Avoid: "Avoid it if a client needs its answer at once: it waits for the stream and all earlier requests.",
		},
		Form:      strategies.Rejected,
		Needs:     []strategies.Need{NeedNATS},
		Excluded:  notParked("NATS' client"),
		Kinds:     kinds,
		GivesBack: true,
		Counts:    quota.CountsAdmitted,
		Options: []quota.Option{{
			Name: "meanwhile", Default: MeanwhileWait, Values: []string{MeanwhileWait, MeanwhileAdmit},
			Doc: "wait: callers wait for their decision; admit: they continue until the instance has heard that nothing is left",
		}},
		Guarantee: []quota.Clause{
			{
				// A refund that a caller repeats gives units of others back.
				Property:  quota.PropertyLeak,
				Tolerates: []quota.Fault{quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit},
				Formula:   "L where callers wait",
				Bound: func(p quota.Params) int64 {
					if admits(p) {
						return p.Offered
					}
					return 0
				},
			},
			neverRejects,
		},
		Elsewhere: strategies.WithFull,
	})
}
