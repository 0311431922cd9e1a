package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// maxErrorShare of requests may end in an unplanned error.
const maxErrorShare = 0.001

// audit looks for reasons not to believe the run.
func (p *pass) audit(v *oracle.Verdict, events []oracle.Event) {
	r, d := &p.run, p.d
	strike := func(code, strikes, format string, args ...any) {
		r.Audit.Strike(code, strikes, fmt.Sprintf(format, args...))
	}
	if u := p.st.unknown(); u != "" {
		strike("command-unknown", results.StrikesCorrectness, "it uses %s, which the table that stands in for Redis does not have", strings.ToUpper(u))
	}
	if d.history.Overflowed() {
		strike("history-overflow", results.StrikesCorrectness, "more than %d decisions in one run: give fewer --requests or a shorter --duration", p.cfg.HistoryLimit)
		return
	}
	if v.Issued.Requests != r.Issued || v.Admitted.Requests != r.Admitted || v.Rejected.Requests != r.Rejected || v.Failed.Requests != r.Errors || v.Malformed > 0 {
		strike("count-mismatch", results.StrikesCorrectness, "callers counted %d issued, %d admitted, %d rejected, %d errors; the history holds %d, %d, %d, %d",
			r.Issued, r.Admitted, r.Rejected, r.Errors, v.Issued.Requests, v.Admitted.Requests, v.Rejected.Requests, v.Failed.Requests)
	}
	if r.Issued == 0 && !r.Partial {
		strike("nothing-issued", results.StrikesCorrectness, "no request was issued")
	}
	if d.inFlight > 0 {
		strike("unfinished", results.StrikesCorrectness, "%d requests were not answered within %v of virtual time", d.inFlight, drain)
	}
	planned := p.planned(events)
	if share := float64(r.Errors-d.prescribed-planned) / float64(max(r.Issued, 1)); share > maxErrorShare {
		strike("errors", results.StrikesCorrectness, "%.2g %% of requests ended in an error, the first: %s", 100*share, r.FirstError)
	}
	if planned > 0 {
		strike("planned-errors", results.StrikesNote, "%d requests ended in an error during the planned outage", planned)
	}
	if d.prescribed > 0 {
		strike("prescribed-errors", results.StrikesNote, "%d requests ended in an error that the strategy's source asks for: %s", d.prescribed, r.FirstError)
	}
	if p.cfg.Workload.Crosses && v.Crossings == 0 && !r.Partial {
		strike("limit-never-crossed", results.StrikesCorrectness, "no subject was asked for more than its limit of %d %s, so nothing could leak", p.policy.Limit, p.policy.Unit)
	}
	p.auditControl(v, strike)
	var failed int
	var first error
	for _, a := range p.st.jobs {
		if err := a.Job().Err; err != nil {
			failed++
			first = errors.Join(first, err)
		}
	}
	if failed > 0 {
		strike("jobs-failed", results.StrikesNote, "the last round of %d background jobs failed: %v", failed, first)
	}
	if d.maxBack > 0 {
		strike("backlog", results.StrikesNote, "up to %d requests waited because %d callers were busy", d.maxBack, p.cfg.Workers)
	}
}

func (p *pass) auditControl(v *oracle.Verdict, strike func(code, strikes, format string, args ...any)) {
	switch {
	case p.sel.Control == strategies.ControlExact && (v.LeakUnits > 0 || v.FalseRejects > 0):
		strike("control-failed", results.StrikesCorrectness, "the exact control leaked %d units and rejected %d requests wrongly: the instrument is wrong", v.LeakUnits, v.FalseRejects)
	case p.sel.Control == strategies.ControlOpen && p.run.Rejected > 0:
		strike("control-failed", results.StrikesCorrectness, "the control that admits everything rejected %d requests", p.run.Rejected)
	}
	if u := p.d.truth.leak; u > v.LeakUnits && p.policy.Window.Kind.Tumbling() && !slices.ContainsFunc(v.Windows, func(w oracle.WindowVerdict) bool { return w.Crossed }) {
		strike("oracles-disagree", results.StrikesCorrectness, "%d units leaked by the series, %d by the verdict", u, v.LeakUnits)
	}
}
