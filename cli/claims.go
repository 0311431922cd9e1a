package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/html"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// pass is what makes runs, and judges something by their records.
type pass struct {
	*group.Settings
	quick, full bool
	from        string
	// parallel is how many runs are made at the same time; 0 is one.
	parallel int
	// name of the files of its report, before the dot.
	name string
	// gates is what does not hold if it fails, one and several.
	gates [2]string
	// files say what is judged. Earlier is the report that is judged again, or nil.
	files func(args []string, earlier *claims.Report) ([]*claims.File, error)
	// html, text and markdown write its report.
	html, markdown func(io.Writer, *claims.Report) error
	text           func(io.Writer, layout.Page, *claims.Report) error
}

// run carries out the command of the pass.
func (s *pass) run(cmd *cobra.Command, args []string) error {
	defer session.OutlivePipes()()
	return s.judge(cmd, args)
}

// lengths say how long runs are, or that there are none.
func (s *pass) lengths() []settings.Setting {
	return []settings.Setting{
		{Name: "quick", Value: settings.Bool(&s.quick)},
		{Name: "full", Value: settings.Bool(&s.full)},
		{Name: "from", Value: settings.Text(&s.from)},
	}
}

// claimsSettings are all that a pass over claims can be told.
type claimsSettings struct {
	pass
	ids, records []string
}

func claimsCommand() *cobra.Command {
	s := &claimsSettings{pass: pass{Settings: group.New(group.Claims), name: "claims", html: html.WriteClaims,
		text:     tables.Claims,
		markdown: tables.ClaimsMarkdown,
		gates:    [...]string{"claim that is a gate does not hold", "claims that are gates do not hold"}}}
	s.files = s.read
	cmd := described("claims", &cobra.Command{RunE: s.run})
	s.Register(cmd, []settings.Setting{
		{Name: "id", Value: settings.List(&s.ids), Complete: completeClaims},
		{Name: "record", Value: settings.List(&s.records), Complete: cobra.NoFileCompletions},
	}, s.lengths(), s.Formats(), s.Output())
	return cmd
}

// completeClaims completes the names of the claims of design records.
func completeClaims(*cobra.Command, []string, string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, claim := range listClaims() {
		out = append(out, cobra.CompletionWithDesc(claim.Name, claim.Doc))
	}
	return out, settings.NoFiles
}

// read takes the files that are named, or those of the design records.
func (s *claimsSettings) read(paths []string, earlier *claims.Report) (files []*claims.File, err error) {
	if len(paths) == 0 {
		files, err = claims.Builtin(explore.Properties())
		if err != nil {
			return nil, err
		}
	}
	for _, path := range paths {
		data, err := settings.ReadBounded(path)
		if err != nil {
			return nil, err
		}
		file, err := claims.Parse(path, data, explore.Properties())
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return claims.Select(files, earlier, group.Items(s.ids), group.Items(s.records))
}

func (s *pass) judge(cmd *cobra.Command, args []string) (err error) {
	if s.quick && s.full {
		return usagef("--quick and --full exclude each other: give one")
	}
	p := &claims.Pass{Full: s.full, Dir: s.from, Read: readEvidence}
	if s.from != "" {
		p.Earlier, err = s.earlier()
		if err != nil {
			return s.Wrong("from", fmt.Errorf("%s has no report (%w): name a directory that %s has written",
				format.OneLine(s.from), err, s.name))
		}
		p.Full = p.Earlier.Full
	}
	p.Files, err = session.Before(cmd.Context(), func() ([]*claims.File, error) { return s.files(args, p.Earlier) })
	if err != nil {
		return fail(exit.Usage, err)
	}
	if s.from == "" {
		dir, err := s.directory()
		if err != nil {
			return err
		}
		defer func() { _ = dir.Release() }()
		p.Dir = dir.Path
		s.runs(cmd, p)
	}
	report, wrong := p.Judge(cmd.Context())
	if report == nil {
		return fail(exit.Usage, wrong)
	}
	if err := s.show(cmd, p, report); err != nil {
		return fail(exit.Failed, err)
	}
	if wrong != nil {
		return fail(exit.Usage, wrong)
	}
	return s.failed(cmd.ErrOrStderr(), report)
}

func (s *pass) directory() (*session.Dir, error) {
	path, err := session.FreeDir(s.Settings)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(path, s.name+".json")); err == nil {
		return nil, s.Wrong("out",
			fmt.Errorf("%s already holds %s.json: name another directory, or judge it again with --from", path, s.name))
	}
	return session.MakeDir(s.Settings, path)
}

// earlier is the report that a pass has written to the directory of --from.
func (s *pass) earlier() (*claims.Report, error) {
	data, err := settings.ReadUpTo(filepath.Join(s.from, s.name+".json"), 1<<26) // that of a whole matrix has 1 MB
	if err != nil {
		return nil, err
	}
	return claims.DecodeReport(data)
}

// readEvidence is the record that a run of a claim left.
func readEvidence(dir string) *claims.Record {
	side, err := readSide(dir)
	if err != nil {
		return &claims.Record{Why: err.Error()}
	}
	return &claims.Record{File: side.File, Series: side.Series, Exploration: side.Exploration}
}

// runs makes the commands of claims run in this process, and tells of each.
func (s *pass) runs(cmd *cobra.Command, p *claims.Pass) {
	p.Parallel = s.parallel
	p.Simulated = runtime.GOMAXPROCS(0)
	began := clock.Wall{}.Now()
	mutex := sync.Mutex{}
	begun := 0
	p.Begin = func(ended, of int, args []string) {
		if s.Quiet {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		begun++
		passed := clock.Wall{}.Now().Sub(began)
		left := ""
		// The first runs say nothing: a sweep takes minutes, and a simulation a second.
		if 4*ended >= of {
			left = fmt.Sprintf(", about %s left", (passed / time.Duration(ended) * time.Duration(of-ended)).Round(time.Second))
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "[%d/%d, %s passed%s] %s\n", min(begun, of), of, passed.Round(time.Second), left,
			format.Command(args))
	}
	p.Failed = func(why string) { fmt.Fprintf(cmd.ErrOrStderr(), "failed, and is made again alone: %s\n", why) }
	p.Check = checkFlags
	p.Run = func(ctx context.Context, args []string) (int, string) {
		var messages bytes.Buffer
		code := execute(session.WithoutBitmaps(ctx), args, io.Discard, &messages)
		return code, messages.String()
	}
}

// checkFlags refuses flags that the command of a run does not have, and values that they do not take.
func checkFlags(args []string) error {
	cmd, rest, err := Command(io.Discard, io.Discard).Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return settings.BadFlag(cmd, err)
	}
	return nil
}

// show writes the report in all forms, and the one that was asked for to standard output.
func (s *pass) show(cmd *cobra.Command, p *claims.Pass, report *claims.Report) error {
	var record, page, text, markdown bytes.Buffer
	if err := errors.Join(encodeJSON(&record, report), s.html(&page, report), s.text(&text, layout.Page{}, report),
		s.markdown(&markdown, report)); err != nil {
		return err
	}
	var wrong error // which is told after the report: a full disk loses the files alone
	if s.from == "" {
		for ext, data := range map[string][]byte{".json": record.Bytes(), ".html": page.Bytes(), ".txt": text.Bytes()} {
			wrong = errors.Join(wrong, files.Write(filepath.Join(p.Dir, s.name+ext), data))
		}
	}
	if s.from == "" && wrong == nil {
		fmt.Fprintf(cmd.ErrOrStderr(),
			"\nwritten to %s: %[2]s.json, %[2]s.html and %[2]s.txt, and a directory for each run\n", p.Dir, s.name)
	}
	return errors.Join(wrong, s.print(cmd, report, record.Bytes(), markdown.Bytes()))
}

// print writes the form that was asked for to standard output.
func (s *pass) print(cmd *cobra.Command, report *claims.Report, record, markdown []byte) error {
	laid, out := terminal.Page(cmd)
	switch {
	case s.JSON || s.Format == document.JSON:
		_, err := out.Write(record)
		return err
	case s.Format == document.Markdown:
		_, err := out.Write(markdown)
		return err
	case s.Format == document.GitHub:
		return errors.Join(tables.ClaimsAnnotations(out, report), summaryOfJob(markdown))
	}
	return s.text(out, laid, report)
}

// failed is the exit code of a pass, and a line for each gate that failed, or that holds and is close.
func (s *pass) failed(stderr io.Writer, report *claims.Report) error {
	n := 0
	for i := range report.Claims {
		j := &report.Claims[i]
		if j.Fails() {
			n++
		}
		if j.Fails() && (!report.Interrupted || j.Verdict != claims.Undecided) || j.Gate && j.Close {
			fmt.Fprintf(stderr, "gate: %s %s: %s\n", j.Record, j.ID, j.Text())
		}
	}
	switch {
	case report.Interrupted:
		return fail(exit.Interrupted, errors.New("interrupted: what has no run is undecided"))
	case !report.Tried():
		return fail(exit.Failed, fmt.Errorf("nothing was decided: %s", report.Claims[0].Why))
	case n > 0:
		return fail(exit.Gate, fmt.Errorf("%s", format.Plural(int64(n), s.gates[0], s.gates[1])))
	}
	return nil
}
