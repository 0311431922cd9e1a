package html

import (
	"strings"

	"github.com/quotabench/quotabench/internal/present/text"
	"github.com/quotabench/quotabench/results"
)

// sweep says which value to use, in place of a table to decide from: its points are settings of their own.
func (v *recordView) sweep(f *results.File) error {
	d, err := text.DecideSweep(f)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range f.Sweep.Parameters {
		names = append(names, p.Name)
	}
	v.Facts = append(v.Facts, facts(d.Setting)...)
	v.Sweep = &settingView{Title: "Sweep of " + strings.Join(names, " by "), Answer: answered(&d, nil)}
	return nil
}
