// Package bursts is a workload of one's own: subjects take turns, each with so many
// requests in a row.
package bursts

import (
	"strconv"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

func init() {
	workloads.Register(workloads.Meta{
		Name: "bursts", Doc: "subjects take turns, each with a burst of requests", Loop: workloads.Closed,
		// --workload bursts:burst-size=15 comes from here.
		Options: []quota.Option{
			{Name: "burst-size", Type: "int", Min: "1", Default: "20", Doc: "`requests` of a subject in a row"},
		},
		Make: func(params workloads.Params) (workloads.Stream, workloads.Info, error) {
			return &stream{size: params.Options.Int("burst-size"), requests: params.Requests},
				workloads.Info{Loop: workloads.Closed}, nil
		},
	})
}

const subjects = 10

type stream struct{ size, requests int64 }

var _ workloads.Bounded = (*stream)(nil)

// At implements [workloads.Stream].
func (s *stream) At(i int64, op *workloads.Op) {
	*op = workloads.Op{Subject: uint32(i / s.size % subjects), Units: 1}
}

// Len implements [workloads.Stream].
func (s *stream) Len() int64 { return s.requests }

// Name implements [workloads.Stream].
func (s *stream) Name(subject uint32) string { return "user-" + strconv.Itoa(int(subject)) }

// Subjects implements [workloads.Bounded].
func (s *stream) Subjects() int { return subjects }
