package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// asPrinted has TestDocumentedCommands carry out every command as it is printed. That
// takes an hour, and what servers the commands ask for.
var asPrinted = os.Getenv("QUOTABENCH_DOCS") == "letter"

// wholePages are the pages whose commands are carried out without QUOTABENCH_LONG. Those of
// the other pages are only parsed then.
var wholePages = []string{"README.md", "docs/comparing.md", "docs/reading-a-report.md"}

// documented is one command line of a page.
type documented struct {
	where  string
	line   string
	parsed bool // and not carried out
}

// TestDocumentedCommands carries out the commands that README.md and the pages of docs
// print, in their order: shortened, and without servers. One that a reader could not
// type fails.
func TestDocumentedCommands(t *testing.T) {
	testenv.Sequential(t)
	pages := []string{"README.md", "CONTRIBUTING.md", "results/baseline/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/strategies/choosing.md", "docs/strategies/leaks-*.md"} {
		found, err := filepath.Glob(filepath.Join(repo, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			name, err := filepath.Rel(repo, f)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, name)
		}
	}
	top, err := filepath.Abs(repo)
	if err != nil {
		t.Fatal(err)
	}
	binary := program(t)
	n := 0
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(top, page))
		if err != nil {
			t.Fatal(err)
		}
		found := commandsOf(page, string(text))
		n += len(found)
		if len(found) == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			readersFiles(t, top, binary)
			for _, c := range found {
				c.parsed = !asPrinted && testenv.Pick(!slices.Contains(wholePages, page), false)
				perform(t, c)
			}
		})
	}
	if n < 100 {
		t.Errorf("only %d commands were found in %d pages", n, len(pages))
	}
}

// printed is a command of a page, and the output that the page shows of it.
var printed = regexp.MustCompile("(?m)^    (?:quotabench|go run \\./cmd/quotabench) (.+)\n\n" +
	"(?:[^\n`][^\n]*\n)*(?:\n)?" + "```\n((?:[^`\n]*\n)+)```$")

// TestPrintedOutput: pages show of a command what it prints. A run is not the same
// twice: what is shown of it is the committed one.
func TestPrintedOutput(t *testing.T) {
	testenv.Sequential(t)
	shown := 0
	for _, page := range []string{"README.md", "docs/exploration.md", "docs/reading-a-report.md"} {
		text, err := os.ReadFile(filepath.Join(repo, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range printed.FindAllStringSubmatch(string(text), -1) {
			shown++
			args := wordsOf(m[1])
			block := m[2]
			var stdout, stderr bytes.Buffer
			if args[0] == "run" {
				args = []string{"report", filepath.Join(repo, "results/baseline/first"), "--out",
					filepath.Join(t.TempDir(), "report.html")}
			}
			if code := cli.Main(args, &stdout, &stderr); code == exit.Usage {
				t.Fatalf("%s: %q: exit %d: %s", page, args, code, stderr.String())
			}
			if got := stdout.String(); testenv.Update() && args[0] == "report" && !strings.Contains(got, block) {
				lines := strings.SplitAfter(got, "\n") // a page shows the first ones
				got = strings.Join(lines[:min(strings.Count(block, "\n"), len(lines))], "")
				text = []byte(strings.Replace(string(text), block, got, 1))
				if err := os.WriteFile(filepath.Join(repo, page), text, 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if !strings.Contains(stdout.String(), block) {
				t.Errorf("%s: %q does not print\n%s\nbut\n%s", page, args, block, stdout.String())
			}
		}
	}
	if shown < 2 {
		t.Errorf("%d outputs are shown: the pattern finds too few", shown)
	}
}

// inTable is a command in a cell of a table, without the program's name.
var inTable = regexp.MustCompile("`((?:explore|sim|run) [^`]+)`")

// commandsOf are the lines of a page that begin with the program's name, in blocks of
// code, and the commands in tables of the studies.
func commandsOf(page, text string) (out []documented) {
	fenced := false
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		where := fmt.Sprintf("%s:%d", page, i+1)
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if strings.HasPrefix(line, "|") && strings.Contains(page, "leaks-of") {
			for _, m := range inTable.FindAllStringSubmatch(line, -1) {
				out = append(out, documented{where: where, line: "quotabench " + m[1]})
			}
		}
		if !fenced && !strings.HasPrefix(line, "    ") {
			continue
		}
		line = strings.TrimPrefix(strings.TrimSpace(line), "./")
		if !strings.HasPrefix(line, "quotabench ") {
			continue
		}
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, "\\") + " " + strings.TrimSpace(lines[i])
		}
		out = append(out, documented{where: where, line: line})
	}
	return out
}

// readersFiles makes a directory with the files that the pages suppose to be there.
func readersFiles(t *testing.T, top, binary string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("TMPDIR", t.TempDir())
	record, err := os.ReadFile(filepath.Join(top, "results/baseline/run-rolling/results.json"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"base", "head", "out/base", "out/head", "."} {
		write(filepath.Join(d, "results.json"), record)
	}
	for _, built := range []string{"quotabench-main", "../base/quotabench"} {
		write(built, []byte("#!/bin/sh\nexec '"+binary+"' \"$@\"\n"))
	}
	write("access.log", []byte(accessLog))
	write("go.mod", []byte("module github.com/quotabench/quotabench\n")) // of the clone that readers are in
	for _, folder := range []string{"results", "examples"} {
		if err := os.Symlink(filepath.Join(top, folder), folder); err != nil {
			t.Fatal(err)
		}
	}
}

const accessLog = `192.0.2.1 - - [10/Oct/2025:13:55:36 +0000] "POST /contact HTTP/1.1" 200 512 "-" "-"
192.0.2.1 - - [10/Oct/2025:13:55:37 +0000] "POST /contact HTTP/1.1" 200 512 "-" "-"
192.0.2.7 - - [10/Oct/2025:13:55:38 +0000] "POST /contact HTTP/1.1" 200 512 "-" "-"
192.0.2.1 - - [10/Oct/2025:13:55:39 +0000] "POST /contact HTTP/1.1" 200 512 "-" "-"
192.0.2.1 - - [10/Oct/2025:13:55:41 +0000] "POST /contact HTTP/1.1" 200 512 "-" "-"
`

// perform carries out a line of one or several commands.
func perform(t *testing.T, c documented) {
	t.Helper()
	line, _, _ := strings.Cut(c.line, " #")
	for part := range strings.SplitSeq(line, "&&") {
		part, _, _ = strings.Cut(part, " | ")
		part, into, redirected := strings.Cut(part, " > ")
		words := wordsOf(strings.TrimSpace(part))
		if len(words) < 2 || words[0] != "quotabench" {
			t.Errorf("%s: %q is no command of the program", c.where, part)
			continue
		}
		stdout := command(t, c, words[1:])
		if redirected {
			if err := os.WriteFile(strings.TrimSpace(into), []byte(stdout), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// command carries out one command and returns what it prints. Codes 1 and 3 are answers; 2 is a command that cannot
// be typed so.
func command(t *testing.T, c documented, args []string) (stdout string) {
	t.Helper()
	switch {
	case c.parsed:
		args = append(slices.Clone(args), "--help") // flags and their values are read first
	case !asPrinted:
		args = shortened(args)
	}
	code, stdout, stderr := carriedOut(t, args)
	server := strings.Contains(c.line+stderr, "localhost") && strings.Contains(stderr, "refused")
	service := strings.Contains(stderr, "the service does not start")
	if code == exit.Usage && (server || service) {
		return "" // of the reader's
	}
	if code != exit.OK && code != exit.Gate && code != exit.Failed {
		t.Errorf("%s: %s\ncarried out as %q: exit %d: %s", c.where, c.line, args, code, stderr)
	}
	if asPrinted {
		t.Logf("%s: %s: exit %d", c.where, c.line, code)
	}
	return stdout
}

func carriedOut(t *testing.T, args []string) (code int, stdout, stderr string) {
	t.Helper()
	if slices.Contains(args, "--against") {
		return execute(t, args...)
	}
	var out, errs bytes.Buffer
	code = cli.Main(args, &out, &errs)
	return code, out.String(), errs.String()
}

// shortened is a command that does the same in little time and without a server, of a
// run the plan alone: of a flag that is given twice the last one counts.
func shortened(args []string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		if strings.Contains(a, "*") {
			if found, err := filepath.Glob(a); err == nil && len(found) > 0 {
				args[i] = found[0]
			}
		}
	}
	sql := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "pg-") })
	switch args[0] {
	case "run":
		if slices.Contains(args, "--param") || slices.Contains(args, "--until") {
			real := func(a string) bool { return strings.HasPrefix(a, "latency=") || strings.HasPrefix(a, "failover=") }
			if sql || slices.Contains(args, "--until") || slices.ContainsFunc(args, real) {
				return append(args, "--print-config")
			}
			return append(args, "--rounds", "1", "--requests", "200", "--redis", "embedded", "--postgres", "embedded")
		}
		left := []string{"--history", "--print-config", "--config"} // what later commands of the page read
		if !slices.ContainsFunc(args, func(a string) bool { return slices.Contains(left, a) }) {
			return append(args, "--print-config")
		}
		return append(args, "--rounds", "1", "--requests", "50", "--loop", "closed", "--redis", "embedded", "--postgres",
			"embedded")
	case "sim":
		if slices.Contains(args, "--trace") || slices.Contains(args, "--print-config") {
			return args
		}
		if slices.Contains(args, "--redis") {
			return append(args, "--print-config")
		}
		if slices.Contains(args, "--against") {
			args = append(args, "--rounds", "1") // TestAgainstSimulated compares more
		}
		return append(args, "--requests", "200")
	case "explore":
		if i := slices.Index(args, "--redis"); i > 0 {
			args[i+1] = "embedded"
		}
		if sql {
			return append(args, "--help")
		}
		switch {
		case slices.Contains(args, "--replay"):
			return args
		case slices.Contains(args, "--full"):
			return append(args, "--max-schedules", "20")
		}
		return append(args, "--max-states", "100", "--postgres", "embedded")
	case "claims":
		if slices.Contains(args, "--id") {
			return args
		}
		return append(args, "--id", "U5-killed,L1") // of ADR-008 and ADR-009; TestCommandsOfClaims has all
	}
	return args
}

// wordsOf splits a line as a shell does, quotes included.
func wordsOf(line string) (out []string) {
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
			begun = true
		case quote == 0 && r == ' ':
			if begun || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
		}
	}
	if begun || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}
