package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/markdown"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// claimPages leads from the pages of strategies to those of claims.
const claimPages = "../claims/"

// Verdicts are the claims of the design records, judged by the records of one pass.
type Verdicts struct {
	claims.Report
	// Dir has the records.
	Dir string
	// Files say what is promised, and what to take from the verdicts.
	Files []*claims.File
}

// readVerdicts judges the records of a pass as anyone may. It returns nil if there are none.
func readVerdicts(dir string) (*Verdicts, error) {
	if _, err := os.Stat(filepath.Join(dir, "claims.json")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out, messages bytes.Buffer
	cmd := cli.Command(&out, &messages)
	cmd.SetArgs([]string{"claims", "--from", dir, "--format", "json"})
	if err := cmd.Execute(); err != nil {
		return nil, fmt.Errorf("judge %s: %w\n%s", dir, err, messages.String())
	}
	verdicts := &Verdicts{Dir: dir}
	err := json.Unmarshal(out.Bytes(), &verdicts.Report)
	if err == nil {
		verdicts.Files, err = claims.Builtin(explore.Properties())
	}
	return verdicts, err
}

// of are the claims of a design record.
func (v *Verdicts) of(record string) []claims.Judgement {
	return slices.DeleteFunc(slices.Clone(v.Claims), func(j claims.Judgement) bool { return j.Record != record })
}

// pages are one for each design record with its drawings, and their index.
func (v *Verdicts) pages() ([]Page, error) {
	var index bytes.Buffer
	fmt.Fprint(&index, "# Claims of the five design records\n\nWhat each [record](../design-records.md) promises, and "+
		"[what came out](../claims.md).\n\n")
	columns := []string{"record"}
	for _, verdict := range claims.Verdicts {
		columns = append(columns, string(verdict))
	}
	table := newTable(columns...)
	var out []Page
	for _, file := range v.Files {
		pages, err := v.page(file)
		if err != nil {
			return nil, err
		}
		out = append(out, pages...)
		cells := []string{fmt.Sprintf("[%s](%s)", file.Record, recordPage(file.Record))}
		for _, verdict := range claims.Verdicts {
			n := 0
			for _, j := range v.of(file.Record) {
				if j.Verdict == verdict {
					n++
				}
			}
			cells = append(cells, fmt.Sprint(n))
		}
		table.Add(cells...)
	}
	index.WriteString(markdown.Table(table))
	kind := "quick"
	if v.Full {
		kind = "full"
	}
	fmt.Fprintf(&index, "\nFrom a %s pass of %d runs, on [2 cores](../strategies/README.md#runs). Judge it again: `quotabench claims --from results/baseline/claims`\n%s",
		kind, v.Runs, mark)
	return append(out, Page{claimPages + Index, index.Bytes()}), nil
}

func recordPage(record string) string { return strings.ToLower(record) + ".md" }

// page is that of a design record, followed by its drawings.
func (v *Verdicts) page(file *claims.File) (pages []Page, err error) {
	var buffer, exhibits bytes.Buffer
	fmt.Fprintf(&buffer, "# %s: %s\n\n", file.Record, file.Title)
	for _, part := range []struct{ name, text string }{{"Change", file.Summary.Change}, {"Keep", file.Summary.Keep},
		{"Instead", file.Summary.Instead}} {
		if part.text != "" {
			fmt.Fprintf(&buffer, "- **%s**: %s\n", part.name, strings.TrimSpace(part.text))
		}
	}
	fmt.Fprintln(&buffer)
	table := newTable("claim", "what the record says", "here", "verdict")
	for _, j := range v.of(file.Record) {
		verdict := format.Join(" ", "**"+string(j.Verdict)+"**", cell(why(&j)))
		if j.Close {
			verdict += " (close)"
		}
		if j.Note != "" {
			verdict += ". " + cell(j.Note)
		}
		here := interval.ReplaceAllString(format.Join("; ", j.Measured, j.Form), "")
		table.Add(j.ID, said(&j), cell(cmp.Or(here, "-")), verdict)
		if j.Curve != nil {
			image, err := curve(&j)
			if err != nil {
				return nil, err
			}
			if image != nil {
				pages = append(pages, Page{claimPages + j.ID + ".svg", image})
				fmt.Fprintf(&exhibits, "\n![%s](%s.svg)\n", j.ID, j.ID)
			}
		}
		if err := v.schedule(&exhibits, &j); err != nil {
			return nil, err
		}
	}
	buffer.WriteString(markdown.Table(table))
	if strings.Contains(buffer.String(), figures.Mark) {
		fmt.Fprintf(&buffer, "\n%s %s.\n", figures.Mark, claims.Disturbed)
	}
	buffer.Write(exhibits.Bytes())
	fmt.Fprint(&buffer, "\n## Commands\n\nWithout a command, a verdict is arithmetic on figures of the record.\n\n",
		commandsOf(v.of(file.Record)), mark)
	return append(pages, Page{claimPages + recordPage(file.Record), buffer.Bytes()}), nil
}

// curve is the drawing of a claim; nil if no value of its sweep has the figure.
func curve(j *claims.Judgement) ([]byte, error) {
	p, err := plot.Claim(j)
	if errors.Is(err, plot.ErrNothingToPlot) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.Render("svg")
}

// said is the promise, with its figure unless it is in the sentence.
func said(j *claims.Judgement) string {
	says := strings.TrimSuffix(j.Says, ".")
	if slices.ContainsFunc(number.FindAllString(j.Promised, -1), func(n string) bool {
		return !strings.Contains(says, n)
	}) {
		says += " (" + j.Promised + ")"
	}
	return cell(says)
}

var number = regexp.MustCompile(`[0-9][0-9.,]*`)

// interval is what is known of a figure, which the report has.
var interval = regexp.MustCompile(` \([^()]* to [^()]*\)`)

// why is what a verdict of a sweep depends on, or the reason for which there is none.
func why(j *claims.Judgement) string {
	if j.Verdict == claims.HoldsOnlyIf { // its figures tell where it does not
		only, _, _ := strings.Cut(j.Why, ";")
		return only
	}
	if j.Why == "" {
		return ""
	}
	return "(" + strings.TrimSpace(j.Why) + ")"
}

// commandsOf are a table of the commands behind the claims of a design record.
func commandsOf(judged []claims.Judgement) string {
	var commands collect.By[string, string]
	for _, j := range judged {
		for _, command := range j.Commands {
			commands.Add(command, j.ID)
		}
	}
	table := newTable("claims", "command")
	for _, command := range commands.Keys {
		table.Add(strings.Join(commands.Of[command], ", "), "`"+cell(command)+"`")
	}
	return markdown.Table(table)
}

// schedule prints the shortest one that a search of the claim found.
func (v *Verdicts) schedule(buffer *bytes.Buffer, j *claims.Judgement) error {
	if j.Schedule == "" {
		return nil
	}
	exploration, err := codec.ReadExploration(filepath.Join(v.Dir, j.Schedule, files.ExplorationName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var finding *results.Finding
	for _, search := range exploration.Searches {
		_, finding = shortest([]*results.Search{search})
		if finding != nil {
			break
		}
	}
	if finding == nil {
		return nil
	}
	fmt.Fprintf(buffer, "\n## %s: %s\n\n", j.ID, finding.Property)
	if len(finding.Steps) <= most {
		fmt.Fprintln(buffer, timeline(finding))
	}
	fmt.Fprintf(buffer, "%s: `quotabench explore --replay %s`\n", format.Plural(int64(len(finding.Steps)), "step", "steps"), finding.Token)
	return nil
}

// most steps of a schedule on the page of a claim.
const most = 4

// claimed are links to the claims whose runs have the strategy.
func (e *Evidence) claimed(name string) string {
	if e.Verdicts == nil {
		return ""
	}
	var out []string
	for _, file := range e.Verdicts.Files {
		isAbout := func(j claims.Judgement) bool {
			return slices.ContainsFunc(j.Commands, func(command string) bool { return uses(command, name) })
		}
		if slices.ContainsFunc(e.Verdicts.of(file.Record), isAbout) {
			out = append(out, fmt.Sprintf("[%s](%s%s)", file.Record, claimPages, recordPage(file.Record)))
		}
	}
	return strings.Join(out, ", ")
}

// uses reports whether a command names the strategy.
func uses(command, strategy string) bool {
	return slices.ContainsFunc(strings.Fields(command), func(word string) bool {
		word, _, _ = strings.Cut(word, ":")
		return word == strategy
	})
}
