package family

import "github.com/quotabench/quotabench/quota"

// Both is the option that says how a request is charged to two quotas.
var Both = quota.Option{
	Name: "both", Default: "after", Values: []string{"after", together},
	Doc: "if the second quota rejects, the first has paid (after) or not (together)",
}

const together = "together"

// Together reports whether the options have a request charged to both of its quotas or to neither.
func Together(o quota.Options) bool { return o[Both.Name] == together }

// Quotas are the requests that a request makes of single quotas: one, or two.
func Quotas(req quota.Request) []quota.Request {
	if req.Second.Policy == nil {
		return []quota.Request{req}
	}
	second := req
	second.Subject, second.Policy = req.Second.Subject, req.Second.Policy
	return []quota.Request{req, second}
}

// Charge asks about both quotas of a request at once, or about each in turn until one rejects it.
func Charge(req quota.Request, together bool, ask func(...quota.Request) (quota.Decision, error)) (d quota.Decision, err error) {
	reqs := Quotas(req)
	if together {
		return ask(reqs...)
	}
	degraded := false
	for i, r := range reqs {
		d, err = ask(r)
		degraded = degraded || d.Degraded
		d.Degraded, d.BySecond = degraded, i > 0 && err == nil && !d.Admitted
		if err != nil || !d.Admitted {
			break
		}
	}
	return d, err
}
