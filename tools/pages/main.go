// Command pages writes the reference of strategies, docs/strategies, a page for each and an
// index, what became of the claims of design records, docs/claims, and what strategies make of faults, docs/faults.md. The texts of the records, report.txt, are made anew, too. Rows of figures, plots and schedules come from the records below results/baseline; none of
// the figures is typed. Plots go to docs/images. make pages runs it:
//
//	go run -C tools ./pages [-records ../results/baseline] [-out ../docs/strategies] [-claims DIR] [-faults DIR]
//
// Pages that somebody wrote stay. A strategy's page links those that link to it, and what
// stands in them between the two comments of [besideFrom] and [besideTo] is made anew.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func main() {
	records := flag.String("records", "../results/baseline", "`directory` of records")
	out := flag.String("out", "../docs/strategies", "`directory` of the pages")
	claims := flag.String("claims", "", "`directory` that quotabench claims has written, to keep among the records")
	faults := flag.String("faults", "", "`directory` that quotabench faults has written, to keep among the records")
	flag.Parse()
	var err error
	if *claims != "" {
		err = keep(*claims, filepath.Join(*records, "claims"), "claims")
	}
	if err == nil && *faults != "" {
		err = keep(*faults, filepath.Join(*records, "faults"), "faults")
	}
	if err == nil {
		err = write(*records, *out)
	}
	if err == nil {
		err = writeReports(*records)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pages: "+err.Error())
		os.Exit(1)
	}
}

// write makes the pages of a directory anew.
func write(records, out string) error {
	evidence, err := readEvidence(records)
	if err != nil {
		return err
	}
	evidence.Verdicts, err = readVerdicts(filepath.Join(records, "claims"))
	if err != nil {
		return err
	}
	evidence.Faults, err = readFaults(filepath.Join(records, "faults"))
	if err != nil {
		return err
	}
	evidence.Others, err = readOthers(out)
	if err != nil {
		return err
	}
	all, err := Render(strategies.All(), evidence)
	if err != nil {
		return err
	}
	if evidence.Verdicts != nil {
		pages, err := evidence.Verdicts.pages()
		if err != nil {
			return err
		}
		all = append(all, pages...)
	}
	if evidence.Faults != nil {
		all = append(all, matrix(evidence.Faults))
	}
	for i := range evidence.Sweeps {
		for _, d := range evidence.Sweeps[i].Plots {
			image, err := d.Plot.Render("svg")
			if err != nil {
				return err
			}
			all = append(all, Page{evidence.Sweeps[i].image(d), image})
		}
	}
	for _, p := range all {
		if err := files.Write(filepath.Join(out, p.Name), []byte(format.Visible(string(p.Bytes)))); err != nil {
			return err
		}
	}
	return nil
}

// writeReports makes the texts next to records of runs, simulations and sweeps anew.
func writeReports(records string) error {
	evidence, err := readEvidence(records)
	if err != nil {
		return err
	}
	pages, err := reports(evidence)
	for _, p := range pages {
		if err == nil {
			err = files.Write(filepath.Join(records, p.Name), p.Bytes)
		}
	}
	return err
}

// reports are those texts, by their names below the records.
func reports(e *Evidence) (out []Page, err error) {
	add := func(name string, f results.File) {
		var text []byte
		if err == nil {
			text, err = render.Text([]*render.Bundle{{File: &f}})
		}
		out = append(out, Page{filepath.Join(name, "report.txt"), text})
	}
	for i, f := range e.Runs {
		add(e.Names[i], f)
	}
	for _, s := range e.Sweeps {
		add(s.Name, s.File)
	}
	return out, err
}

// readEvidence reads the records in a directory and below it, except those of claims and faults, which have pages of their own.
func readEvidence(dir string) (*Evidence, error) {
	e := &Evidence{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{"claims", "faults"}, entry.Name()) && path != dir {
			return fs.SkipDir
		}
		path = codec.Unpacked(path)
		switch filepath.Base(path) {
		case render.ResultsName:
			f, err := codec.Read(path)
			if err != nil {
				return err
			}
			name := filepath.Base(filepath.Dir(path))
			if f.Sweep == nil {
				e.Runs = append(e.Runs, f)
				e.Names = append(e.Names, name)
				return nil
			}
			s, err := newSweep(name, f)
			if err != nil {
				return err
			}
			e.Sweeps = append(e.Sweeps, s)
		case render.ExplorationName:
			x, err := codec.ReadExploration(path)
			if err != nil {
				return err
			}
			e.Explorations = append(e.Explorations, x)
		}
		return nil
	})
	if err == nil && len(e.Runs)+len(e.Explorations) == 0 {
		err = errors.New(dir + " holds no " + render.ResultsName + " and no " + render.ExplorationName)
	}
	return e, err
}

// readOthers reads the pages in a directory that were not generated.
func readOthers(dir string) (others []Page, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !Generated(text) {
			others = append(others, Page{Name: filepath.Base(path), Bytes: text})
		}
	}
	return others, nil
}
