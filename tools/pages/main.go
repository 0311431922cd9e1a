// Command pages writes the reference of strategies, docs/strategies, a page for each and an index, what became of the
// claims of design records, docs/claims, and what strategies make of faults, docs/faults.md. The texts of the records,
// report.txt, are made anew, too. Rows of figures, plots and schedules come from the records below results/baseline;
// none of the figures is typed. Plots go to docs/images. make pages runs it:
//
//	go run -C tools ./pages [-records ../results/baseline] [-out ../docs/strategies] [-claims DIR] [-faults DIR]
//
// Pages that somebody wrote stay. A strategy's page links those that link to it, and what stands in them between the
// two comments of [besideFrom] and [besideTo] is made anew.
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
	var evidence *Evidence
	if err == nil {
		evidence, err = read(*records)
	}
	if err == nil {
		err = write(evidence, *out)
	}
	if err == nil {
		err = writeReports(evidence, *records)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pages: "+err.Error())
		os.Exit(1)
	}
}

// read reads all that pages quote, except other pages.
func read(records string) (*Evidence, error) {
	evidence, err := readEvidence(records)
	if err != nil {
		return nil, err
	}
	evidence.Verdicts, err = readVerdicts(filepath.Join(records, "claims"))
	if err != nil {
		return nil, err
	}
	evidence.Faults, err = readFaults(filepath.Join(records, "faults"))
	return evidence, err
}

// write makes the pages of a directory anew.
func write(evidence *Evidence, out string) (err error) {
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
		for _, drawing := range evidence.Sweeps[i].Plots {
			image, err := drawing.Plot.Render("svg")
			if err != nil {
				return err
			}
			all = append(all, Page{evidence.Sweeps[i].image(drawing), image})
		}
	}
	images, err := guideImages(evidence)
	if err != nil {
		return err
	}
	all = append(all, images...)
	for _, page := range all {
		if err := files.Write(filepath.Join(out, page.Name), []byte(format.Visible(string(page.Bytes)))); err != nil {
			return err
		}
	}
	return nil
}

// writeReports makes the texts next to records of runs, simulations and sweeps anew.
func writeReports(evidence *Evidence, records string) error {
	pages, err := reports(evidence)
	for _, page := range pages {
		if err == nil {
			err = files.Write(filepath.Join(records, page.Name), page.Bytes)
		}
	}
	return err
}

// reports are those texts, by their names below the records.
func reports(evidence *Evidence) (out []Page, err error) {
	add := func(name string, file results.File) {
		var text []byte
		if err == nil {
			text, err = render.Text([]*render.Bundle{{File: &file}})
		}
		out = append(out, Page{filepath.Join(name, "report.txt"), text})
	}
	for i, file := range evidence.Runs {
		add(evidence.Names[i], file)
	}
	for _, sweep := range evidence.Sweeps {
		add(sweep.Name, sweep.File)
	}
	return out, err
}

// readEvidence reads the records in a directory and below it, except those of claims and faults, which have pages of
// their own.
func readEvidence(dir string) (*Evidence, error) {
	evidence := &Evidence{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{"claims", "faults"}, entry.Name()) && path != dir {
			return fs.SkipDir
		}
		path = codec.Unpacked(path)
		switch filepath.Base(path) {
		case files.ResultsName:
			file, err := codec.Read(path)
			if err != nil {
				return err
			}
			name := filepath.Base(filepath.Dir(path))
			if file.Sweep == nil {
				evidence.Runs = append(evidence.Runs, file)
				evidence.Names = append(evidence.Names, name)
				return nil
			}
			sweep, err := newSweep(name, file)
			if err != nil {
				return err
			}
			evidence.Sweeps = append(evidence.Sweeps, sweep)
		case files.ExplorationName:
			exploration, err := codec.ReadExploration(path)
			if err != nil {
				return err
			}
			evidence.Explorations = append(evidence.Explorations, exploration)
		}
		return nil
	})
	if err == nil && len(evidence.Runs)+len(evidence.Explorations) == 0 {
		err = errors.New(dir + " holds no " + files.ResultsName + " and no " + files.ExplorationName)
	}
	return evidence, err
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
