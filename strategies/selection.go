package strategies

import (
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/quota"
)

// Selection is a registered strategy with a value for each of its options.
type Selection struct {
	*Meta
	Options quota.Options
}

// String renders the selection as the command line takes it: the name, and the options that differ from their defaults
// in the order of declaration, e.g. "lua-reserve:sync=1s".
func (s Selection) String() string {
	given := quota.Options{}
	for _, option := range s.Meta.Options {
		if text := s.Options[option.Name]; text != option.Default {
			given[option.Name] = text
		}
	}
	return options.Text(s.Name, s.Meta.Options, given)
}

// Select completes the given options with defaults. Unknown names and invalid
// values are errors that name the valid ones, and so are values that do not go together.
func (m *Meta) Select(given quota.Options) (Selection, error) {
	all, err := quota.Complete(m.Options, given)
	if err == nil && m.Check != nil {
		err = m.Check(all)
	}
	if err != nil {
		err = fmt.Errorf("strategy %s: %w", m.Name, err)
		return Selection{Meta: m, Options: all}, err
	}
	if m.NeedsToo != nil {
		if more := m.NeedsToo(all); len(more) > 0 {
			own := *m
			own.Needs = slices.Concat(m.Needs, more)
			m = &own
		}
	}
	return Selection{Meta: m, Options: all}, nil
}

// Connections is what a strategy asks of the client that an instance gets of one
// store. Zero values leave a matter to the runner.
type Connections struct {
	// Pool is the most connections of an instance. A measurement opens no more than
	// there are callers to use them, and its own setting wins. If a runner lets one
	// caller after the other go on, each caller has a connection.
	Pool int
}

// Connections are what the selection asks of its client of the store with the name.
func (s Selection) Connections(store string) Connections {
	if s.Meta.Connections == nil {
		return Connections{}
	}
	return s.Meta.Connections(store, s.Options)
}
