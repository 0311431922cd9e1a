package programs

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTable: every row says what needs it, how it is installed and what tests need it.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, p := range All() {
		if names[p.Name] || !regexp.MustCompile(`^[a-z-]+$`).MatchString(p.Name) {
			t.Errorf("row %q: its name is another row's, or no word", p.Name)
		}
		names[p.Name] = true
		if p.Title == "" || p.Use == "" || p.Installed == "" || len(p.needed) == 0 || len(usual) == 0 {
			t.Errorf("row %s lacks a cell: %+v", p.Name, p)
		}
		if p.Package("debian") == "" && p.Otherwise == "" {
			t.Errorf("row %s says no way to install it", p.Name)
		}
		for _, pattern := range slices.Concat(usual, p.folders) {
			_, err := filepath.Match(pattern, "")
			if err != nil || !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "$") {
				t.Errorf("row %s: folder %q: %v", p.Name, pattern, err)
			}
		}
		for _, test := range p.Tests {
			folder, pattern, _ := strings.Cut(test, ":")
			found, err := filepath.Glob(filepath.Join("../../..", folder, "*_test.go"))
			if err != nil || len(found) == 0 {
				t.Errorf("row %s: no tests in %s", p.Name, folder)
			}
			text := ""
			for _, file := range found {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				text += string(b)
			}
			for name := range strings.SplitSeq(pattern, "|") {
				if !regexp.MustCompile(`func Test\w*` + name).MatchString(text) {
					t.Errorf("row %s: no test %s in %s", p.Name, name, folder)
				}
			}
		}
	}
}

const plantedTable = "# a comment\n" +
	"name\ttitle\tprograms\tfolders\tuse\toption\tinstalled\tdebian\tfedora\talpine\thomebrew\totherwise\ttests\n" +
	"*\tevery program\t-\t$PLANTED/usual\t-\t-\t-\t-\t-\t-\t-\t-\t-\n" +
	"planted\tPlanted\tplanted-first|planted-second,planted-other\t$PLANTED/own-*\ta test\t-\tmake deps\ta " +
	"b\t-\t-\t-\tmake c\t.\n"

// TestFind: programs are found on the PATH, in the usual folders and in those of their row; a device or a folder of
// such a name is none.
func TestFind(t *testing.T) {
	wasAll := all
	wasUsual := usual
	t.Cleanup(func() {
		all = wasAll
		usual = wasUsual
	})
	all, usual = parse(plantedTable)
	dir := t.TempDir()
	t.Setenv("PLANTED", dir)
	t.Setenv("PATH", filepath.Join(dir, "path"))
	for _, folder := range []string{"path", "usual", "own-1"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := Named("planted")
	missing := func(want string) {
		t.Helper()
		_, err := p.Find()
		found, ok := errors.AsType[*MissingError](err)
		if !ok || strings.Join(found.Absent, " ") != want {
			t.Errorf("%v, want that %s are missing", err, want)
		}
	}
	missing("planted-first planted-other")
	write := func(path string) string {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := filepath.Join(dir, "usual", "planted-first")
	if err := os.Symlink(os.DevNull, first); err != nil {
		t.Fatal(err)
	}
	missing("planted-first planted-other")
	other := write("own-1/planted-other")
	missing("planted-first")
	second := write("path/planted-second")
	if paths, err := p.Find(); err != nil || !slices.Equal(paths, []string{second, other}) {
		t.Errorf("%q, %v", paths, err)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(first, 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := p.Path(); err != nil || path != second {
		t.Errorf("%q, %v: a folder is taken for a program", path, err)
	}
	t.Setenv("QUOTABENCH_HIDE", "redis, planted")
	missing("planted-first planted-other")
	t.Setenv("QUOTABENCH_HIDE", "")
	t.Setenv("PLANTED", "")
	missing("planted-other")
}

// TestInstall: each package manager installs its own packages, and what they lack is added.
func TestInstall(t *testing.T) {
	rows, _ := parse(plantedTable)
	p := rows[0]
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if got := p.Install(); got != "make c" {
		t.Errorf("without a package manager: %q", got)
	}
	for _, program := range []string{"dnf", "apt-get"} {
		if err := os.WriteFile(filepath.Join(dir, program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"dnf": "make c", "apt-get": "apt-get install a b and make c"}[program]
		if got := p.Install(); got != want {
			t.Errorf("with %s: %q, want %q", program, got, want)
		}
	}
	p.Otherwise = ""
	if err := os.Remove(filepath.Join(dir, "apt-get")); err != nil {
		t.Fatal(err)
	}
	if got := p.Install(); got != "install its package, often called a b" {
		t.Errorf("without a package for it: %q", got)
	}
}

func TestRequired(t *testing.T) {
	for list, want := range map[string]bool{"": false, "postgres": false, "redis": true, "postgres, redis": true,
		"rediss": false} {
		t.Setenv("QUOTABENCH_REQUIRE", list)
		if got := Required("redis"); got != want {
			t.Errorf("QUOTABENCH_REQUIRE=%s requires Redis: %v, want %v", list, got, want)
		}
	}
}
