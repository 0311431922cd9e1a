package group

import (
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/stores"
)

// troubles are what goes wrong or changes in mid-run, and the clients that meet it.
type troubles struct {
	Troubles []string
	Clients  []string // options of the clients of stores
}

// Trouble says what goes wrong or changes in mid-run.
func (s *Settings) Trouble() []settings.Setting {
	return []settings.Setting{
		{Name: "life", Title: settings.Trouble, Value: settings.Span(&s.Life, bounds.MaxLife), Computed: true,
			Parameter: true,
			Doc: "how long an admitted request can still be committed or refunded (default " + bounds.DefaultLife.String() +
				")"},
		s.Deadline()[0],
		{Name: "trouble", Common: s.command == Sim, Title: settings.Trouble, Value: settings.List(&s.Troubles),
			Complete: settings.Words(trouble.Examples()...)},
	}
}

// Deadline is how long a strategy may block.
func (s *Settings) Deadline() []settings.Setting {
	return []settings.Setting{{
		Name: "decision-timeout", Title: settings.Trouble,
		Value: settings.Span(&s.DecisionTimeout, bounds.MaxDecisionTimeout), Computed: true, Parameter: true,
		Doc: by(s, "time after which a decision is cancelled; one that does not return within half of that again is given "+
			"up, and its strategy's run ends", texts{
			Sim: "real time that a strategy may block outside of the simulation, on a mutex or a channel, before it is " +
				"given up",
			Explore: "real time that a strategy may block outside of the search, on a mutex or a channel, before it is given up",
		}) + " (default " + bounds.DecisionTimeout.String() + ")",
	}}
}

// planned is what is to go wrong.
func (s *Settings) planned() (trouble.List, error) {
	all, err := trouble.ParseAll(s.Troubles)
	for _, event := range all.Of(trouble.Outage, trouble.Network) {
		if _, unknown := stores.DriverOf(event.Where.Name); err == nil {
			err = unknown
		}
	}
	if err != nil {
		return nil, s.Wrong("trouble", err)
	}
	return all, nil
}

// Simulated says what clients a simulation has.
func (s *Settings) Simulated() []settings.Setting { return []settings.Setting{s.client()} }

// Connected are the settings of clients of real stores, and of the cores on which these run.
func (s *Settings) Connected() []settings.Setting {
	return []settings.Setting{s.client(), s.cores()}
}

// cores is the setting of the cores of the harness and of the stores.
func (s *Settings) cores() settings.Setting {
	const wants = "give auto, shared, apart or harness=LIST,stores=LIST"
	text := func() string { return s.Cores.String() }
	parse := func(text string) (take func(), err error) {
		cores, err := measure.ParseCores(text)
		take = func() { s.Cores = cores }
		return take, err
	}
	return settings.Setting{
		Name:     "cores",
		Title:    settings.Trouble,
		Value:    settings.Checked(wants, text, parse),
		Complete: settings.Words(measure.CoresAuto, measure.CoresShared, measure.CoresApart, "harness=", "stores="),
	}
}
