package results

import "fmt"

// Bounded is a search of all schedules with few preemptions, however long: in these, few
// calls and rounds of jobs are interrupted between two of their commands.
type Bounded struct {
	// Preemptions up to which all schedules were searched; nil if a bound ended it
	// before it had seen those without any.
	Preemptions *int `json:"preemptions,omitempty"`
	// Whole is set if none of them came between a command and its reply, although
	// these are two steps.
	Whole bool `json:"whole_commands"`
	// States met.
	States int `json:"states"`
	// Runs made.
	Runs int64 `json:"runs"`
	// Depth is the longest schedule in steps.
	Depth int `json:"depth"`
	// Capped says why it ended before it had seen all that it was to see; empty if it had.
	Capped string `json:"capped,omitempty"`
}

// Extent says which schedules were searched.
func (b *Bounded) Extent() string {
	where := ""
	if b.Whole {
		where = " before a command"
	}
	switch n := b.Preemptions; {
	case n == nil:
		return "some schedules with few preemptions"
	case *n == 0:
		return "all schedules without a preemption" + where
	case *n == 1:
		return "all schedules with at most 1 preemption" + where
	default:
		return fmt.Sprintf("all schedules with at most %d preemptions%s", *n, where)
	}
}
