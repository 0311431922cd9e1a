package figures

import (
	"fmt"

	"github.com/quotabench/quotabench/workloads"
)

// Workload returns the parameters of a workload that were given, by the names of
// the command line, as a record holds them.
func Workload(p workloads.Params) map[string]string {
	out := map[string]string{}
	if p.Popularity != "" {
		out["popularity"] = p.Popularity
	}
	if p.Cost != "" {
		out["cost"] = p.Cost
	}
	if p.Fill != 0 {
		out["fill"] = fmt.Sprint(p.Fill)
	}
	given(out, "over-quota", p.OverQuota)
	given(out, "fail-share", p.FailShare)
	given(out, "abandon-share", p.AbandonShare)
	given(out, "misjudged-share", p.MisjudgedShare)
	given(out, "settle", p.Settle)
	given(out, "hold", p.Hold)
	return out
}

// given records a parameter that may have been left to the workload.
func given[T any](out map[string]string, name string, value *T) {
	if value != nil {
		out[name] = fmt.Sprint(*value)
	}
}
