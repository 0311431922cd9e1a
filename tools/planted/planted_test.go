package planted_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/explore"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/prove"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/tools/planted"
)

const (
	// chosen names the limiter that TestProve proves, and commanded has the lines of a command that knows all limiters.
	chosen    = "PLANTED_LIMITER"
	commanded = "PLANTED_COMMAND"
	// askedFor is a pattern of names, whose rows TestTable makes anew, asking the tools that it asks, and logs a folder
	// for what they print.
	askedFor = "PLANTED"
	asking   = "PLANTED_TOOLS"
	logs     = "PLANTED_LOGS"
	// longest is how long a processor may be busy with a proof.
	longest = 30 * time.Second
	// page has the table.
	page = "README.md"
)

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(commanded); ok {
		for _, l := range planted.All() {
			strategies.Register(l.Meta)
		}
		os.Exit(cli.Main(strings.Split(args, "\n"), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestProve proves one limiter with no options, in a process of its own.
func TestProve(t *testing.T) {
	for _, l := range planted.All() {
		if l.Name == os.Getenv(chosen) {
			prove.Limiter(t, &l.Meta, prove.Options{})
		}
	}
}

// verdict is what a tool says of a limiter.
type verdict string

const (
	clean    verdict = "-"
	found    verdict = "found"
	noClaim  verdict = "no claim" // it says why
	unfit    verdict = "unfit"    // the tool has no place for such a limiter, and says so
	declared verdict = "declared" // it exceeds its limit by what it declares
	accusing         = `(?m)^ *(LEAK|GUARANTEE|FALSE-REJECT|DRIFT|TTL|STRANDED|FORGOTTEN|STUCK)\b`
	// breaking is what is wrong of a limiter that declares by how much it exceeds its limit.
	breaking = `(?m)^ *(GUARANTEE|FALSE-REJECT|DRIFT|TTL|STRANDED|FORGOTTEN|STUCK)\b`
)

// columns of the table. The suite of conformance is a part of prove.
var columns = []string{"run", "sim", "explore", "conformance", "prove", "prove took"}

// row is what the tools say of a limiter, by column.
type row map[string]string

// TestTable has tools look at the limiters whose names match, and writes what they say.
func TestTable(t *testing.T) {
	pattern, ok := os.LookupEnv(askedFor)
	if !ok {
		t.Skip("it takes most of an hour: make -C tools planted")
	}
	only := regexp.MustCompile(pattern)
	tools := strings.Fields(cmp.Or(os.Getenv(asking), "run sim explore prove"))
	for _, l := range planted.All() {
		if !only.MatchString(l.Name) {
			continue
		}
		rows := committed(t)
		r := rows[l.Name]
		if r == nil {
			r = row{}
			rows[l.Name] = r
		}
		for _, tool := range tools {
			r.take(t, tool, &l)
		}
		fmt.Println(r.text(&l))
		write(t, rows)
	}
}

// take has a tool look at a limiter.
func (r row) take(t *testing.T, tool string, l *planted.Limiter) {
	says, text, took := look(t, tool, l)
	if says == found && tool == "explore" && l.Exceeds && !regexp.MustCompile(breaking).MatchString(text) {
		says = declared
	}
	r[tool] = string(says)
	if l.Defect == "" && says == found {
		t.Errorf("%s is right, and is accused by %s:\n%s", l.Name, tool, text)
	}
	if tool != "prove" {
		return
	}
	r["prove took"], r["conformance"] = fmt.Sprintf("%.0f s", took.Seconds()), string(clean)
	if strings.Contains(text, "--- FAIL: TestProve/conformance ") {
		r["conformance"] = string(found)
	}
	if took > longest {
		t.Errorf("%s took %v of a processor", l.Name, took)
	}
	if l.Defect != "" && says != found {
		t.Errorf("%s is not found: %s", l.Name, l.Defect)
	}
}

// text is the row of a limiter.
func (r row) text(l *planted.Limiter) string {
	cells := []string{"`" + l.Name + "`"}
	for _, c := range columns {
		cells = append(cells, r[c])
	}
	return "| " + strings.Join(append(cells, cmp.Or(l.Defect, "right")), " | ") + " |"
}

// committed are the rows of the page.
func committed(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]row{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if name := strings.Trim(cells[0], " `"); strings.HasPrefix(line, "| `") && len(cells) == len(columns)+2 {
			rows[name] = row{}
			for i, c := range columns {
				rows[name][c] = strings.TrimSpace(cells[i+1])
			}
		}
	}
	return rows
}

// write puts the rows into the page, the right limiters first, and how many were found.
func write(t *testing.T, rows map[string]row) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(text), "\n## Table\n")
	if !ok {
		t.Fatalf("%s has no heading: Table", page)
	}
	var b strings.Builder
	b.WriteString(head + "\n## Table\n\n| limiter | " + strings.Join(columns, " | ") + " | what is wrong |\n" +
		strings.Repeat("|---", len(columns)+2) + "|\n")
	of := map[bool]int{}
	proved := 0
	for _, right := range []bool{true, false} {
		for _, l := range planted.All() {
			r := rows[l.Name]
			if r == nil || right != (l.Defect == "") {
				continue
			}
			b.WriteString(r.text(&l) + "\n")
			of[right]++
			if !right && r["prove"] == string(found) {
				proved++
			}
		}
	}
	fmt.Fprintf(&b, "\n%d right limiters, and %d wrong ones, of which `prove` finds %d.\n", of[true], of[false], proved)
	if err := os.WriteFile(page, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// look has a tool look at a limiter, in a process of its own, with no flags but a policy for the tools that make none
// of their own. It took so much of a processor.
func look(t *testing.T, tool string, l *planted.Limiter) (says verdict, text string, took time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	policy, err := explore.ExamplePolicy(&l.Meta)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestProve$", "-test.v", "-test.timeout=4m")
	switch tool {
	case "prove":
		cmd.Env = append(os.Environ(), chosen+"="+l.Name)
	case "explore":
		cmd.Env = append(os.Environ(), commanded+"=explore\n"+l.Name)
	default:
		cmd.Env = append(os.Environ(), commanded+"="+strings.Join([]string{tool, l.Name, "--policy", policy.String()}, "\n"))
	}
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if dir := os.Getenv(logs); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, l.Name+"-"+tool+".txt"), out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	s := cmd.ProcessState
	return verdictOf(tool, s.ExitCode(), string(out)), string(out), s.UserTime() + s.SystemTime()
}

// verdictOf reads an exit code, and what explore prints of properties that nothing is promised of.
func verdictOf(tool string, code int, out string) verdict {
	accused := regexp.MustCompile(accusing).MatchString(out)
	failed := regexp.MustCompile(`--- FAIL: TestProve/(conformance|simulation)`)
	switch {
	case tool == "prove" && strings.Contains(out, "name Exploration in Options.Skip") && !failed.MatchString(out) &&
		!accused:
		return noClaim // it goes another way when it is run again
	case tool == "prove" && code != 0, code == 1, tool == "explore" && accused:
		return found
	case code == 2:
		return unfit
	case code != 0:
		return noClaim
	default:
		return clean
	}
}

// The set has at least as many right limiters as wrong ones, no name twice, and a row for each.
func TestSet(t *testing.T) {
	rows := committed(t)
	of := map[bool]int{}
	var names []string
	for _, l := range planted.All() {
		if slices.Contains(names, l.Name) {
			t.Errorf("%s is there twice", l.Name)
		}
		names = append(names, l.Name)
		of[l.Defect == ""]++
		if l.Meta.Form != strategies.Library {
			t.Errorf("%s is of the form %s", l.Name, l.Meta.Form)
		}
		if rows[l.Name] == nil {
			t.Errorf("%s has no row: make -C tools planted ONLY='^%s$'", l.Name, l.Name)
		}
	}
	if of[true] < of[false] || len(names) < 40 || len(rows) != len(names) {
		t.Errorf("%d are right, %d wrong, and %d have a row", of[true], of[false], len(rows))
	}
}
