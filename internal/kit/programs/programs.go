// Package programs knows the programs of others that this project starts: where they
// are found, what needs them, and how they are installed. All of that stands in
// programs.tsv, which .ci/deps reads too.
package programs

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed programs.tsv
var table string

// Program is one row of the table. It can consist of several programs.
type Program struct {
	// Name is the word for QUOTABENCH_REQUIRE.
	Name string
	// Title is what people call it, e.g. "PostgreSQL".
	Title string
	// Use says what needs it.
	Use string
	// Option of quotabench, which needs it; "" if only tests or tools do.
	Option string
	// Installed says what installs it, e.g. "make deps".
	Installed string
	// Tests are packages with tests that need it, and behind a colon which of them.
	Tests []string

	// Otherwise is a command that installs it, or what its packages lack.
	Otherwise string

	needed   [][]string // alternative names of each program
	folders  []string   // patterns
	packages map[string]string
}

// managers are package managers, in the order of their columns.
var managers = [...]struct{ column, program, install string }{
	{"debian", "apt-get", "apt-get install"},
	{"fedora", "dnf", "dnf install"},
	{"alpine", "apk", "apk add"},
	{"homebrew", "brew", "brew install"},
}

// everything is the row with the folders of every program.
const everything = "*"

var all, usual = parse(table)

// parse returns the programs of a table, and the folders in which every program is looked for.
func parse(text string) (all []Program, usual []string) {
	var header []string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case header == nil:
			header = cells
			continue
		}
		cell := func(column string) string {
			i := slices.Index(header, column)
			if i < 0 || len(cells) != len(header) {
				panic(fmt.Sprintf("programs.tsv: no column %s in %q", column, line))
			}
			if cells[i] == "-" {
				return ""
			}
			return cells[i]
		}
		program := Program{
			Name: cell("name"), Title: cell("title"), Use: cell("use"), Option: cell("option"), Installed: cell("installed"),
			Tests:     strings.Fields(cell("tests")),
			Otherwise: cell("otherwise"),
			folders:   list(cell("folders"), ","),
			packages:  map[string]string{},
		}
		for _, m := range managers {
			program.packages[m.column] = cell(m.column)
		}
		for _, alternatives := range list(cell("programs"), ",") {
			program.needed = append(program.needed, list(alternatives, "|"))
		}
		if program.Name == everything {
			usual = program.folders
			continue
		}
		all = append(all, program)
	}
	return all, usual
}

// list splits a cell, which may be empty.
func list(cell, separator string) []string {
	if cell == "" {
		return nil
	}
	return strings.Split(cell, separator)
}

// All returns the rows of the table, in its order.
func All() []Program { return slices.Clone(all) }

// Known returns the row of that name, if there is one.
func Known(name string) (program Program, ok bool) {
	i := slices.IndexFunc(all, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, false
	}
	return all[i], true
}

// Named returns the row of that name, which must be in the table.
func Named(name string) Program {
	program, ok := Known(name)
	if !ok {
		panic("programs.tsv has no row " + name)
	}
	return program
}

// Find returns the paths of all that is needed, in the order of the table, or a
// [*MissingError].
func (p Program) Find() (paths []string, err error) {
	if p.Hidden() {
		return nil, p.Missing()
	}
	var absent []string
	for _, alternatives := range p.needed {
		path, ok := p.find(alternatives)
		if !ok {
			absent = append(absent, alternatives[0])
		}
		paths = append(paths, path)
	}
	if absent != nil {
		return nil, p.Missing(absent...)
	}
	return paths, nil
}

// Path returns the path of the first program, or a [*MissingError] if one of them is missing.
func (p Program) Path() (string, error) {
	paths, err := p.Find()
	if err != nil {
		return "", err
	}
	return paths[0], nil
}

// find looks for a program on the PATH, in the usual folders and in its own, which a
// user's PATH may not name.
func (p Program) find(alternatives []string) (path string, ok bool) {
	for _, name := range alternatives {
		path, ok = onPath(name)
		if ok {
			return path, true
		}
		for _, folder := range slices.Concat(expand(usual), p.Folders()) {
			path = filepath.Join(folder, name)
			if IsFile(path) {
				return path, true
			}
		}
	}
	return "", false
}

func onPath(name string) (path string, ok bool) {
	found, err := exec.LookPath(name)
	if err != nil {
		return "", false
	}
	path, err = filepath.Abs(found)
	return path, err == nil
}

// OnPath returns the path of the first program if it is on the PATH under its first name.
func (p Program) OnPath() (path string, ok bool) {
	if p.Hidden() {
		return "", false
	}
	return onPath(p.needed[0][0])
}

// Folders returns the folders of this machine where the program is if it is not on the PATH.
func (p Program) Folders() []string {
	if p.Hidden() {
		return nil
	}
	return expand(p.folders)
}

// expand returns the folders of this machine that patterns describe.
func expand(patterns []string) (folders []string) {
	for _, pattern := range patterns {
		if rest, ok := strings.CutPrefix(pattern, "$"); ok {
			variable, below, _ := strings.Cut(rest, "/")
			value := os.Getenv(variable)
			if value == "" {
				continue
			}
			pattern = filepath.Join(value, below)
		}
		found, _ := filepath.Glob(pattern) // the patterns of the table are well-formed
		folders = append(folders, found...)
	}
	return folders
}

// IsFile reports whether there is a file of that name that can be a program: what covers
// one up in a sandbox, such as /dev/null, is none.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Package returns the packages that a system has of it: "debian", "fedora", "alpine" or "homebrew".
func (p Program) Package(system string) string { return p.packages[system] }

// Names returns the names of all its programs.
func (p Program) Names() []string { return slices.Concat(p.needed...) }

// Install returns the command that installs it here.
func (p Program) Install() string {
	for _, m := range managers {
		if p.packages[m.column] == "" {
			continue
		}
		if _, ok := onPath(m.program); !ok {
			continue
		}
		command := m.install + " " + p.packages[m.column]
		if p.Otherwise != "" {
			command += " and " + p.Otherwise
		}
		return command
	}
	switch {
	case p.Otherwise != "":
		return p.Otherwise
	case p.packages["debian"] != "":
		return "install its package, often called " + p.packages["debian"]
	}
	return "install it by hand"
}

// Packages says, for readers on any machine, how its packages are installed on Debian and macOS.
func (p Program) Packages() string {
	return fmt.Sprintf("Debian: apt-get install %s, macOS: brew install %s", p.packages["debian"], p.packages["homebrew"])
}

// MissingError says what is missing and how it is installed.
type MissingError struct {
	Program Program
	// Absent are the programs of the row that were not found, each by its first name.
	Absent []string
}

// Missing returns a [*MissingError]. Without names all programs of the row are missing.
func (p Program) Missing(absent ...string) error {
	if absent == nil {
		for _, alternatives := range p.needed {
			absent = append(absent, alternatives[0])
		}
	}
	return &MissingError{Program: p, Absent: absent}
}

func (e *MissingError) Error() string {
	what := e.Program.Title
	if names := strings.Join(e.Absent, ", "); !strings.EqualFold(names, what) {
		what += " (" + names + ")"
	}
	return "no " + what + " found on the PATH or in the usual folders: " + e.Program.Install()
}

// Variables that tests read.
const (
	requireVariable = "QUOTABENCH_REQUIRE"
	hideVariable    = "QUOTABENCH_HIDE"
)

// Hidden reports whether this is a test binary, and QUOTABENCH_HIDE has it go without this
// program.
func (p Program) Hidden() bool { return testing.Testing() && lists(hideVariable, p.Name) }

// lists reports whether a variable has a word between its commas.
func lists(variable, word string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv(variable), ","), func(text string) bool {
		return strings.TrimSpace(text) == word
	})
}
