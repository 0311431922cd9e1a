package claims

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/parallel"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/internal/report/condition"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Record is what a run left, or why it left nothing.
type Record = condition.Record

// Pass is one judging of claims.
type Pass struct {
	Files []*File
	// Full makes longer runs.
	Full bool
	// Parallel is how many runs are made at the same time; 0 is one.
	Parallel int
	// Simulated is how many simulations are made at the same time, if that is more. They measure no time.
	Simulated int
	// Dir has a directory for the record of each run.
	Dir string
	// Run executes a command line, whose record goes to the directory that it names, and returns its exit code and
	// what it wrote to standard error. It is nil if the records are there.
	Run func(ctx context.Context, args []string) (code int, messages string)
	// Check refuses a command line that cannot be one of quotabench, before any run is made. It may be nil.
	Check func(args []string) error
	// Earlier is the report of the pass whose records are judged again; nil if the runs are made now.
	Earlier *Report
	// Read is the record in a directory.
	Read func(dir string) *Record
	// Begin is told of each run before it starts, and how many have ended. It and Run may be called at the same time.
	Begin func(ended, of int, args []string)
	// Failed is told why a run that failed next to others is made again alone.
	Failed func(why string)

	dirs  map[string]string  // by the key of a job
	done  map[string]*Record // by directory
	again map[*Claim]job     // those of cells that are measured for longer
}

// Select keeps the claims with the ids and of the design records that are named. Without ids those are all that the
// earlier pass judged or made the runs of; nil is a pass of all claims.
func Select(files []*File, earlier *Report, ids, records []string) ([]*File, error) {
	var out []*File
	var names, known []string
	for _, file := range files {
		names = append(names, file.Record)
		kept := *file
		kept.Claims = nil
		for i := range file.Claims {
			known = append(known, file.Claims[i].ID)
			if len(ids) == 0 && earlier.has(file, &file.Claims[i]) || slices.Contains(ids, file.Claims[i].ID) {
				kept.Claims = append(kept.Claims, file.Claims[i])
			}
		}
		if len(kept.Claims) > 0 && (len(records) == 0 || slices.Contains(records, file.Record)) {
			out = append(out, &kept)
		}
	}
	for _, text := range records {
		if !slices.Contains(names, text) {
			return nil, quota.Unknown("design record", text, names, "")
		}
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, quota.Unknown("claim", id, known, "")
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no claim of these design records is left: name one of theirs by --id, or leave out --record")
	}
	return out, nil
}

// job is one command line, which claims share.
type job struct {
	dir string
	// line is the command as reports show it, without passwords.
	line string
	// key tells command lines apart. The report of an earlier pass has no passwords, so its runs have their lines as keys.
	key  string
	args []string
	// wrong is why the command line cannot be taken apart.
	wrong error
}

// job of a run, or of one strategy of it for longer. It has no directory unless one is known.
func (p *Pass) job(file *File, name, alone string) job {
	run := file.Runs[name]
	more := run.Quick
	if p.Full {
		more = run.Full
	}
	if alone != "" {
		run.Command = "run " + alone
		more = more + " --duration " + file.Longer
	}
	args, err := split(run.Command + " " + more)
	j := job{args: args, line: format.Command(args), wrong: err}
	j.key = strings.Join(args, "\x00")
	if p.Earlier != nil {
		j.key = j.line
	}
	j.dir = p.dirs[j.key]
	return j
}

// plan gives each command line that is needed a directory: the name of its first run, unless an earlier pass made it.
func (p *Pass) plan() (jobs []job, asked int) {
	planned := map[string]bool{}
	taken := map[string]bool{}
	for _, file := range p.Files {
		for i := range file.Claims {
			names := file.Claims[i].runs()
			asked += len(names)
			for _, name := range names {
				j := p.job(file, name, "")
				if planned[j.key] {
					continue
				}
				if p.Earlier == nil {
					j.dir = name
					for n := 2; taken[j.dir]; n++ {
						j.dir = fmt.Sprintf("%s-%d", name, n)
					}
				}
				planned[j.key] = true
				taken[j.dir] = true
				p.dirs[j.key] = j.dir
				jobs = append(jobs, j)
			}
		}
	}
	return jobs, asked
}

// Report is what a pass found.
type Report struct {
	// Schema is the version of this form.
	Schema int `json:"schema"`
	// Full is set if it was a full pass.
	Full bool `json:"full"`
	// Runs that were made, and how often claims asked for one.
	Runs  int `json:"runs"`
	Asked int `json:"asked"`
	// Claims with their verdicts, in the order of the files.
	Claims []Judgement `json:"claims"`
	// Interrupted is set if not all runs were made.
	Interrupted bool `json:"interrupted"`
}

// Schema is the version of the form of a [Report].
const Schema = 1

// DecodeReport reads a report that a pass has written. It names directories that are below its own, and no others.
func DecodeReport(data []byte) (*Report, error) {
	report := new(Report)
	if err := json.Unmarshal(data, report); err != nil {
		return nil, err
	}
	if report.Schema != Schema {
		return nil, fmt.Errorf("it has schema %d, this quotabench reads %d", report.Schema, Schema)
	}
	for i := range report.Claims {
		judged := &report.Claims[i]
		if len(judged.Directories) != len(judged.Commands) {
			return nil, fmt.Errorf("claim %d has %d commands and %d directories", i+1, len(judged.Commands),
				len(judged.Directories))
		}
		for _, dir := range judged.Directories {
			if err := format.CheckFileName(dir); dir != "" && err != nil {
				return nil, fmt.Errorf("claim %d: %w", i+1, err)
			}
		}
	}
	return report, nil
}

// Judge makes the runs that are needed, each once, and decides all claims. A run that fails leaves the claims that need
// it undecided. What an interrupted pass has measured is judged. A cell that is undecided is measured once more, for
// longer, and then judged by both runs. An error is about conditions that cannot be read; the rest is judged. There
// is no report if a command line cannot be read: then no run is made.
func (p *Pass) Judge(ctx context.Context) (*Report, error) {
	p.dirs, p.done, p.again = p.Earlier.directories(), map[string]*Record{}, map[*Claim]job{}
	jobs, asked := p.plan()
	if err := p.checked(jobs); err != nil {
		return nil, err
	}
	p.obtain(ctx, jobs, 0)
	all, wrong := p.judge()
	if more := p.longer(ctx, all); len(more) > 0 {
		p.obtain(ctx, more, len(jobs))
		jobs = append(jobs, more...)
		asked = asked + len(more)
		all, wrong = p.judge()
	}
	return &Report{Schema: Schema, Full: p.Full, Runs: len(jobs), Asked: asked, Claims: all,
		Interrupted: ctx.Err() != nil}, wrong
}

// checked refuses command lines that no run could be made of.
func (p *Pass) checked(jobs []job) error {
	for _, j := range jobs {
		if j.wrong != nil {
			return j.wrong
		}
		if p.Check == nil {
			continue
		}
		if err := p.Check(j.args); err != nil {
			return fmt.Errorf("%s: %w", j.line, err)
		}
	}
	return nil
}

// obtain makes runs, after others, or reads their records: first those that measure, then simulations.
func (p *Pass) obtain(ctx context.Context, jobs []job, others int) {
	var ended atomic.Int64
	ended.Store(int64(others))
	record := func(j job) *Record {
		defer ended.Add(1)
		return p.record(ctx, int(ended.Load()), others+len(jobs), j)
	}
	var measured, simulated []job
	for _, j := range jobs {
		if j.args[0] == "sim" {
			simulated = append(simulated, j)
		} else {
			measured = append(measured, j)
		}
	}
	p.together(p.Parallel, measured, record)
	p.together(max(p.Parallel, p.Simulated), simulated, record)
	for _, j := range jobs { // what failed next to others, such as a server that did not start in time, is tried alone
		if r := p.done[j.dir]; p.Parallel > 1 && p.Run != nil && r.Short() && ctx.Err() == nil {
			p.Failed(cmp.Or(r.Why, r.Ended, j.line))
			dir := filepath.Join(p.Dir, j.dir)
			_ = os.Rename(dir, dir+"-failed") // what it has measured is kept
			p.done[j.dir] = record(j)
		}
	}
}

// together makes runs, so many at the same time.
func (p *Pass) together(most int, jobs []job, record func(job) *Record) {
	for i, r := range parallel.Do(most, len(jobs), func(i int) *Record { return record(jobs[i]) }) {
		p.done[jobs[i].dir] = r
	}
}

// longer are the longer runs of the cells that are undecided, or those that an earlier pass made.
func (p *Pass) longer(ctx context.Context, all []Judgement) (jobs []job) {
	n := 0
	for _, file := range p.Files {
		for i := range file.Claims {
			claim := &file.Claims[i]
			first := all[n]
			n++
			if file.Longer == "" || claim.Cell == nil || ctx.Err() != nil {
				continue
			}
			j := p.job(file, claim.Cell.Run, claim.Cell.Label)
			switch {
			case p.Earlier == nil && first.Verdict == Undecided && !first.Gate: // which has no record
				j.dir = fmt.Sprintf("%s-longer-%d", first.Directories[0], len(jobs)+1)
			case j.dir == "":
				continue
			}
			p.again[claim] = j
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// judge decides all claims by the records that there are.
func (p *Pass) judge() (all []Judgement, wrong error) {
	all = []Judgement{}
	for _, file := range p.Files {
		for i := range file.Claims {
			claim := &file.Claims[i]
			records := map[string]*Record{}
			var used []job
			schedule := ""
			for _, name := range claim.runs() {
				j := p.job(file, name, "")
				records[name] = p.done[j.dir]
				if name == claim.Schedule {
					schedule = j.dir
				}
				used = append(used, j)
			}
			if j, ok := p.again[claim]; ok {
				used = append(used, j)
				records[claim.Cell.Run] = joined(records[claim.Cell.Run], p.done[j.dir])
			}
			judged, err := file.Judge(claim, records)
			judged.Schedule = schedule
			if err != nil {
				judged.Verdict = Undecided
				judged.Why = err.Error()
				wrong = errors.Join(wrong, err)
			}
			for _, j := range used {
				judged.Commands = append(judged.Commands, j.line)
				judged.Directories = append(judged.Directories, j.dir)
			}
			all = append(all, judged)
		}
	}
	return all, wrong
}

// joined has the rounds of a run and of a longer one.
func joined(r, longer *Record) *Record {
	if r.File == nil || longer.File == nil {
		return r
	}
	file := *r.File
	file.Runs = slices.Concat(file.Runs, longer.File.Runs)
	file.Summaries = results.Summarise(file.Runs)
	return &Record{File: &file}
}

// Tried reports whether a run decided a claim, or none of them needs one. A pass in which every run failed says
// nothing.
func (r *Report) Tried() bool {
	needed := false
	for i := range r.Claims {
		switch r.Claims[i].Verdict {
		case Holds, Refuted:
			return true
		case Undecided:
			needed = true
		}
	}
	return !needed
}

// has reports whether a pass judged a claim, or made all of its runs.
func (r *Report) has(file *File, claim *Claim) bool {
	if r == nil || slices.ContainsFunc(r.Claims, func(j Judgement) bool {
		return j.Record == file.Record && j.ID == claim.ID
	}) {
		return true
	}
	pass := Pass{Full: r.Full, Earlier: r, dirs: r.directories()}
	runs := claim.runs()
	missing := func(run string) bool { return pass.job(file, run, "").dir == "" }
	return len(runs) > 0 && !slices.ContainsFunc(runs, missing)
}

// directories of the runs of a pass, by their command lines. Lines that differed in their passwords alone have none.
func (r *Report) directories() map[string]string {
	out := map[string]string{}
	if r == nil {
		return out
	}
	for i := range r.Claims {
		for n, line := range r.Claims[i].Commands {
			dir := r.Claims[i].Directories[n]
			if known, ok := out[line]; ok && known != dir {
				dir = ""
			}
			out[line] = dir
		}
	}
	return out
}

// record of a run that is made now, or was made before.
func (p *Pass) record(ctx context.Context, ended, of int, j job) *Record {
	dir := filepath.Join(p.Dir, j.dir)
	messages := ""
	if j.dir == "" {
		return &Record{Why: "the earlier pass did not make its run"}
	}
	if p.Run != nil {
		if ctx.Err() != nil {
			return &Record{Why: "the pass was interrupted before its run"}
		}
		p.Begin(ended, of, j.args)
		var code int
		code, messages = p.Run(ctx, slices.Concat(j.args, []string{"--out", dir}))
		messages = redact.All(messages)
		if code == exit.Usage {
			return &Record{Why: j.line + ": " + format.OneLine(messages)}
		}
	}
	record := p.Read(dir)
	if i := strings.LastIndex(messages, "quotabench: "); record.Short() && i >= 0 {
		record.Ended = j.line + ": " + format.OneLine(messages[i:])
		if record.Why != "" {
			record.Why = record.Ended
		}
	}
	if record.File != nil {
		record.File.Summaries = results.Summarise(record.File.Runs) // which know their rounds
	}
	return record
}
