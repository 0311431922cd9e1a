package text

import (
	"bufio"
	"io"
	"slices"

	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Exploration writes the reports of all that was searched, counted and replayed.
// Replays of what a search found follow its report.
func Exploration(w io.Writer, page layout.Page, x *results.Exploration) error {
	out := bufio.NewWriter(w)
	first := true
	part := func(write func() error) error {
		if !first {
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
		first = false
		return write()
	}
	searched := map[string]bool{}
	for i, s := range x.Searches {
		searched[s.Strategy] = true
		if err := part(func() error { return Search(out, page, s) }); err != nil {
			return err
		}
		if slices.ContainsFunc(x.Searches[i+1:], func(later *results.Search) bool { return later.Strategy == s.Strategy }) {
			continue // replays follow the last of its searches
		}
		for _, r := range x.Replays {
			if r.Strategy != s.Strategy {
				continue
			}
			if err := part(func() error { return Replay(out, page, r, true) }); err != nil {
				return err
			}
		}
	}
	for _, c := range x.Censuses {
		if err := part(func() error { return Census(out, page, c) }); err != nil {
			return err
		}
	}
	for _, r := range x.Replays {
		if searched[r.Strategy] {
			continue
		}
		if err := part(func() error { return Replay(out, page, r, false) }); err != nil {
			return err
		}
	}
	return out.Flush()
}
