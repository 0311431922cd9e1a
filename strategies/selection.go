package strategies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/quota"
)

// Selection is a registered strategy with a value for each of its options.
type Selection struct {
	*Meta
	Options quota.Options
	// Client is the kind of Redis client that its instances are given; empty for
	// [PlainClient].
	Client Client
}

// String renders the selection as the command line takes it: the name, its kind of client
// if that is not the plain one, and the options that differ from their defaults in the
// order of declaration, e.g. "lua-reserve@autopipeline:sync=1s".
func (s Selection) String() string {
	name := s.Name
	if s.Client != "" && s.Client != PlainClient {
		name += clientMark + string(s.Client)
	}
	given := quota.Options{}
	for _, option := range s.Meta.Options {
		if text := s.Options[option.Name]; text != option.Default {
			given[option.Name] = text
		}
	}
	return options.Text(name, s.Meta.Options, given)
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

// Client is a kind of Redis client. A strategy's code is the same with each.
type Client string

// The kinds of clients.
const (
	// PlainClient sends each command by itself, over a connection of its pool.
	PlainClient Client = "plain"
	// AutoPipeline puts the commands of callers that come at the same time into one
	// pipeline: that of go-redis, in which each call waits for its reply. See
	// docs/stores.md for what it changes.
	AutoPipeline Client = "autopipeline"
)

// clientMark stands between a strategy's name and its kind of client.
const clientMark = "@"

// Clients are all kinds, the plain one first.
func Clients() []Client { return []Client{PlainClient, AutoPipeline} }

// ParseClient reads the name of a kind.
func ParseClient(name string) (Client, error) {
	if client := Client(name); slices.Contains(Clients(), client) {
		return client, nil
	}
	return "", quota.Unknown("kind of client", name, format.Strings(Clients()), "")
}

// WithClient is the selection with a kind of client. Only a strategy that keeps something
// in Redis has one.
func (s Selection) WithClient(client Client) (Selection, error) {
	if len(s.RedisNeeds()) == 0 && client != PlainClient {
		return s, fmt.Errorf("strategy %s asks no Redis: it has no client of the kind %s", s.Name, client)
	}
	s.Client = client
	return s, nil
}

// WithClients are the selections with each of the kinds of clients. Those that have one
// already keep it, and strategies that ask no Redis have one entry, whatever the kinds.
func WithClients(all []Selection, kinds []Client) (out []Selection) {
	add := func(selection Selection) {
		if !slices.ContainsFunc(out, func(o Selection) bool { return o.String() == selection.String() }) {
			out = append(out, selection)
		}
	}
	for _, selection := range all {
		if selection.Client != "" || len(selection.RedisNeeds()) == 0 {
			add(selection)
			continue
		}
		for _, client := range kinds {
			selection.Client = client
			add(selection)
		}
	}
	return out
}

// Excludes returns why the selection cannot be run in the mode; ok is false if it can.
func (s Selection) Excludes(mode Mode) (why string, ok bool) {
	if why, ok := s.Meta.Excludes(mode); ok {
		return why, ok
	}
	if mode != ModeMeasure && s.Client != "" && s.Client != PlainClient {
		return "kinds of clients differ in a measurement alone: leave out " + clientMark + string(s.Client), true
	}
	return "", false
}

// cutClient takes the kind of client off the first word of a selection; "" if it names
// none.
func cutClient(word string) (name string, client Client, err error) {
	name, kind, given := strings.Cut(word, clientMark)
	if !given {
		return word, "", nil
	}
	client, err = ParseClient(kind)
	if err != nil {
		err = fmt.Errorf("%q: %w", word, err)
	}
	return name, client, err
}
