package strategies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
)

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
	if c := Client(name); slices.Contains(Clients(), c) {
		return c, nil
	}
	return "", quota.Unknown("kind of client", name, format.Strings(Clients()), "")
}

// WithClient is the selection with a kind of client. Only a strategy that keeps something
// in Redis has one.
func (s Selection) WithClient(c Client) (Selection, error) {
	if len(s.RedisNeeds()) == 0 && c != PlainClient {
		return s, fmt.Errorf("strategy %s asks no Redis: it has no client of the kind %s", s.Name, c)
	}
	s.Client = c
	return s, nil
}

// WithClients are the selections with each of the kinds of clients. Those that have one
// already keep it, and strategies that ask no Redis have one entry, whatever the kinds.
func WithClients(all []Selection, kinds []Client) (out []Selection) {
	add := func(s Selection) {
		if !slices.ContainsFunc(out, func(o Selection) bool { return o.String() == s.String() }) {
			out = append(out, s)
		}
	}
	for _, s := range all {
		if s.Client != "" || len(s.RedisNeeds()) == 0 {
			add(s)
			continue
		}
		for _, c := range kinds {
			s.Client = c
			add(s)
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
func cutClient(word string) (name string, c Client, err error) {
	name, kind, given := strings.Cut(word, clientMark)
	if !given {
		return word, "", nil
	}
	c, err = ParseClient(kind)
	if err != nil {
		err = fmt.Errorf("%q: %w", word, err)
	}
	return name, c, err
}
