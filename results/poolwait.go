package results

import "github.com/quotabench/quotabench/internal/groups"

// PoolWait is how long callers waited for a connection of a store's pools during a
// pass, over all instances. Those of background jobs are among them.
type PoolWait struct {
	// Store by its name.
	Store string `json:"store"`
	// Taken counts connections that were taken from a pool.
	Taken int64 `json:"taken"`
	// Waited counts those for which the caller had to wait, since all were in use.
	Waited int64 `json:"waited"`
	// WaitNS is the sum of these waits in nanoseconds.
	WaitNS int64 `json:"wait_ns"`
}

// PoolWaitSummary is the wait for connections of all stores over valid rounds.
type PoolWaitSummary struct {
	// MeanNS is the wait of all commands of one request together, in nanoseconds: the
	// sum of waits by the requests.
	MeanNS Figure `json:"mean_ns"`
	// WaitedPct is the share of connections taken that had to be waited for, in percent.
	WaitedPct float64 `json:"waited_pct"`
}

// poolWaits condenses the waits of valid rounds.
func (s *Summary) poolWaits(runs []*Run) {
	var means []float64
	var taken, waited int64
	for _, r := range runs {
		if r.PoolWait == nil || r.Issued == 0 {
			continue
		}
		total := int64(0)
		for _, p := range r.PoolWait {
			total += p.WaitNS
			taken += p.Taken
			waited += p.Waited
		}
		means = append(means, float64(total)/float64(r.Issued))
	}
	if means != nil {
		s.PoolWait = &PoolWaitSummary{MeanNS: OverRounds(means), WaitedPct: Percent(waited, taken)}
	}
}

func joinedPoolWaits(shards []*Run) (out []PoolWait) {
	for _, r := range shards {
		for _, p := range r.PoolWait {
			if whole, known := groups.In(&out, p, func(x PoolWait) bool { return x.Store == p.Store }); known {
				add(whole, &p)
			}
		}
	}
	return out
}
