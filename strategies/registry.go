package strategies

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/quota"
)

var registry struct {
	mu sync.RWMutex
	m  map[string]*Meta
}

// Register adds a strategy. It is called from init functions and panics if the
// Meta is incomplete, with all that is missing, or if its name is taken.
func Register(meta Meta) {
	if err := meta.validate(); err != nil {
		panic("strategies.Register: " + err.Error())
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if registry.m == nil {
		registry.m = map[string]*Meta{}
	}
	if _, ok := registry.m[meta.Name]; ok {
		panic("strategies.Register: " + meta.Name + " is registered twice")
	}
	registry.m[meta.Name] = &meta
}

// BuildIn gives a strategy that was registered without Open its code. It is called
// by init functions of packages whose clients are not part of every program, and
// panics if there is no such strategy, or if it has its code already.
func BuildIn(name string, open func(context.Context, Env) (Strategy, error)) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	switch meta := registry.m[name]; {
	case meta == nil:
		panic("strategies.BuildIn: " + name + " is not registered")
	case meta.Open != nil || open == nil:
		panic("strategies.BuildIn: " + name + " is built in twice, or by nothing")
	default:
		meta.Open = open
	}
}

// All returns every registered strategy, sorted by name.
func All() []*Meta {
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	return slices.SortedFunc(maps.Values(registry.m), func(a, b *Meta) int { return strings.Compare(a.Name, b.Name) })
}

// Lookup returns the strategy with the given name. The error lists all names.
func Lookup(name string) (*Meta, error) {
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	if meta, ok := registry.m[name]; ok {
		return meta, nil
	}
	return nil, quota.Unknown("strategy", name, slices.Sorted(maps.Keys(registry.m)),
		", core, all, or a pattern such as pg-*")
}

// coreStrategies returns the well-known strategies, sorted by name.
func coreStrategies() []*Meta {
	all := All()
	if core := slices.DeleteFunc(slices.Clone(all), func(meta *Meta) bool { return !meta.Core }); len(core) > 0 {
		return core
	}
	return all
}

// sets are the words of a list that stand for several strategies.
var sets = map[string]func() []*Meta{"all": All, coreSet: coreStrategies}

const coreSet = "core"

// IsSet reports whether a word of a list stands for several strategies: "core", "all" or
// a pattern such as "pg-*", also with options behind it.
func IsSet(word string) bool {
	word, _, _ = strings.Cut(word, ":")
	_, ok := sets[word]
	return ok || strings.Contains(word, "*") && !strings.Contains(word, "=") // which an option has
}

// members are the strategies that a word stands for, sorted by name.
func members(set string) ([]*Meta, error) {
	if all, ok := sets[set]; ok {
		return all(), nil
	}
	if !IsSet(set) {
		meta, err := Lookup(set)
		return []*Meta{meta}, err
	}
	var out []*Meta
	for _, meta := range All() {
		ok, err := path.Match(set, meta.Name)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w: write * for any letters, e.g. pg-*", set, err)
		}
		if ok {
			out = append(out, meta)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no strategy is named like %q: see quotabench list strategies", set)
	}
	return out, nil
}

// Parse reads a list such as "incr-expire,three-tier:write=literal,reset=job",
// "core", "all" or "pg-*". After a strategy's colon, every following part that contains "=" is one
// more of its options. All members of a set have the options behind it. The same strategy may come twice with different
// options.
func Parse(list string) ([]Selection, error) {
	named, err := options.List(list, "strategy", optionsOf)
	if err != nil {
		return nil, err
	}
	var out []Selection
	for _, n := range named {
		out, err = appendSelected(out, n)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// optionsOf are those of a strategy, or of all members of a set.
func optionsOf(name string) (all []quota.Option, err error) {
	metas, err := members(name)
	if err != nil {
		return nil, err
	}
	for _, meta := range metas {
		all = append(all, meta.Options...)
	}
	return all, nil
}

// appendSelected adds what a word of a list stands for.
func appendSelected(out []Selection, word options.Named) ([]Selection, error) {
	metas, err := members(word.Name)
	if err != nil {
		return nil, err
	}
	for _, meta := range metas {
		given := quota.Options{}
		if word.Name == coreSet {
			maps.Copy(given, meta.BriskOptions)
		}
		maps.Copy(given, word.Given)
		selection, err := meta.Select(given)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Selection) bool { return o.String() == selection.String() }) {
			return nil, fmt.Errorf("strategy %s is given twice", selection)
		}
		out = append(out, selection)
	}
	return out, nil
}
