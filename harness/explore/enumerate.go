package explore

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/strategies"
)

// Census is what an enumeration counted.
type Census struct {
	Strategy string `json:"strategy"`
	Policy   string `json:"policy"`
	Limit    int64  `json:"limit"`
	Clients  int    `json:"clients"`
	// Schedules run, those that leak, and the worst leak in units.
	Schedules int64 `json:"schedules"`
	Leaking   int64 `json:"leaking"`
	Worst     int64 `json:"worst_units"`
	// Shortest leaking schedule, or nil.
	Shortest *Finding `json:"shortest,omitempty"`
	// Complete is false where a bound or an interruption ended it.
	Complete bool `json:"complete"`

	OnServer
}

// String says what was counted, in one line.
func (c *Census) String() string {
	what := "every schedule"
	if !c.Complete {
		what = "the first schedules"
	}
	share := 0.0
	if c.Schedules > 0 {
		share = 100 * float64(c.Leaking) / float64(c.Schedules)
	}
	return fmt.Sprintf("%s of %d clients: %d, of which %d leak (%.2f %%, a share and no probability)", what, c.Clients, c.Schedules, c.Leaking, share)
}

// Enumerate runs every schedule, without leaving out any that are alike, and
// counts those that leak.
func Enumerate(ctx context.Context, sel strategies.Selection, cfg Config) (*Census, error) {
	cfg, err := cfg.complete(sel)
	if err != nil {
		return nil, err
	}
	if OnPostgres(sel) {
		return enumeratePostgres(ctx, sel, cfg)
	}
	return explored(sel, cfg, func(w *world) (*Census, error) { return w.enumerate(ctx) })
}

func (w *world) enumerate(ctx context.Context) (*Census, error) {
	c := &Census{Strategy: w.sel.String(), Policy: w.cfg.Policy.Name, Limit: w.cfg.Policy.Limit, Clients: w.cfg.Clients}
	var tree sched.Tree
	var path, next, shortest []choice
	var detail breach
	more := true
	for ; more && c.Schedules < w.cfg.MaxSchedules && ctx.Err() == nil; more = tree.Next() {
		if err := w.begin(); err != nil {
			return nil, err
		}
		path = path[:0]
		var leak int64
		for {
			if next = w.enabled(next[:0], false); len(next) == 0 {
				break
			}
			step := next[tree.Choose(len(next))]
			if err := w.apply(step); err != nil {
				return nil, err
			}
			path = append(path, step)
			now := w.truth.leak()
			if now > 0 && leak == 0 && (shortest == nil || len(path) < len(shortest)) {
				shortest = append(shortest[:0], path...)
				detail = breach{Leak, fmt.Sprintf("%d units over the limit of %d", now, c.Limit), now}
			}
			leak = max(leak, now)
		}
		w.end()
		c.Schedules++
		if leak > 0 {
			c.Leaking++
			c.Worst = max(c.Worst, leak)
		}
	}
	c.Complete = !more
	if err := tree.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotDeterministic, err)
	}
	if shortest == nil {
		return c, nil
	}
	res := &Result{Findings: []Finding{w.finding(detail, shortest)}}
	if _, err := w.finish(res); err != nil {
		return nil, err
	}
	c.Shortest = &res.Findings[0]
	return c, nil
}
