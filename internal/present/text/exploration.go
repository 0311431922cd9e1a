package text

import (
	"io"
	"slices"

	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Exploration writes the reports of all that was searched, counted and replayed.
// Replays of what a search found follow its report.
func Exploration(w io.Writer, page layout.Page, x *results.Exploration) error {
	return write(w, func(section func([]string)) {
		searched := map[string]bool{}
		for i, s := range x.Searches {
			searched[s.Strategy] = true
			section(searchLines(page, s, ""))
			if slices.ContainsFunc(x.Searches[i+1:], func(later *results.Search) bool { return later.Strategy == s.Strategy }) {
				continue // replays follow the last of its searches
			}
			for _, r := range x.Replays {
				if r.Strategy == s.Strategy {
					section(replayLines(page, r, true))
				}
			}
		}
		for _, c := range x.Censuses {
			section(censusLines(page, c))
		}
		for _, r := range x.Replays {
			if !searched[r.Strategy] {
				section(replayLines(page, r, false))
			}
		}
	})
}

// Search writes what was searched, the timeline of every finding, and what
// may be claimed of the rest. again is what r lacks, since an earlier search found it too.
func Search(w io.Writer, page layout.Page, r *results.Search, again string) error {
	return write(w, func(section func([]string)) { section(searchLines(page, r, again)) })
}

// Timeline writes a finding as a table: a line per step, a column per actor
// with the command and its reply, and the truth after it.
func Timeline(w io.Writer, page layout.Page, f *results.Finding) error {
	return write(w, func(section func([]string)) { section(timelineLines(page, f)) })
}

// Census writes what an enumeration counted, and the shortest schedule that
// leaks.
func Census(w io.Writer, page layout.Page, c *results.Census) error {
	return write(w, func(section func([]string)) { section(censusLines(page, c)) })
}

// Replay writes how a schedule went when it was run again. known says that its
// timeline stands above, and need not be shown if nothing was different.
func Replay(w io.Writer, page layout.Page, r *results.Replay, known bool) error {
	return write(w, func(section func([]string)) { section(replayLines(page, r, known)) })
}
