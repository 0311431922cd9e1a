package isolate

import (
	"fmt"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Strategy is a registered strategy as one process tells it to another, with the time zone
// of its policy.
type Strategy struct {
	Name string
	Zone Zone
}

// Told is the strategy as it is told. The policy loses its time zone, which has no form in
// JSON.
func Told(sel strategies.Selection, p *quota.Policy) (s Strategy, err error) {
	s.Name = sel.String()
	s.Zone, err = ZoneOf(p.Window.Location)
	p.Window.Location = nil
	return s, err
}

// Select is the strategy in this process. The policy gets its time zone back.
func (s Strategy) Select(p *quota.Policy) (sel strategies.Selection, err error) {
	chosen, err := strategies.Parse(s.Name)
	if err != nil || len(chosen) != 1 {
		return sel, fmt.Errorf("strategy %s is none of this program: %w", s.Name, err)
	}
	p.Window.Location, err = s.Zone.Location()
	return chosen[0], err
}
