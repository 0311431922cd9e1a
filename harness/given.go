package harness

import (
	"fmt"

	"github.com/quotabench/quotabench/workloads"
)

// given returns the parameters of a workload that were given, by the names of
// the command line, as a record holds them.
func given(p workloads.Params) map[string]string {
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
	note(out, "over-quota", p.OverQuota)
	note(out, "fail-share", p.FailShare)
	note(out, "abandon-share", p.AbandonShare)
	note(out, "misjudged-share", p.MisjudgedShare)
	note(out, "settle", p.Settle)
	note(out, "hold", p.Hold)
	return out
}

// note records a parameter that may have been left to the workload.
func note[T any](out map[string]string, name string, value *T) {
	if value != nil {
		out[name] = fmt.Sprint(*value)
	}
}
