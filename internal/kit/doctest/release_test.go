package doctest

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// release is the part of .goreleaser.yaml that is checked against the repository.
type release struct {
	Before struct{ Hooks []string }
	Builds []struct {
		Dir, Main                         string
		Env, Goos, Goarch, Flags, Ldflags []string
	}
	Archives []struct {
		Files  []struct{ Src, Dst string }
		Folder string `yaml:"wrap_in_directory"`
	}
	Casks []struct {
		Binary   string
		Manpages []string
	} `yaml:"homebrew_casks"`
}

// TestRelease checks the configuration of releases against the program, the script that
// writes what lies next to it, and the pages.
func TestRelease(t *testing.T) {
	var r release
	readYAML(t, "../../../.goreleaser.yaml", &r)
	read := func(name string) string {
		b, err := os.ReadFile(path.Join("../../..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if len(r.Builds) != 2 || len(r.Archives) != 2 || len(r.Casks) != 1 || len(r.Before.Hooks) != 1 {
		t.Fatalf("%+v", r)
	}
	// A cask has one text for all systems.
	folder := r.Archives[0].Folder
	cask := r.Casks[0]
	if strings.Contains(folder, ".Os") || cask.Binary != folder+"/quotabench" ||
		!slices.Equal(cask.Manpages, []string{folder + "/man/quotabench.1"}) {
		t.Errorf("the cask names %q and %q, and the folder in the archives is %q", cask.Binary, cask.Manpages, folder)
	}
	for _, b := range r.Builds {
		if got := strings.Join(slices.Concat(b.Goos, b.Goarch), " "); got != "linux darwin windows amd64 arm64" {
			t.Errorf("built for %s", got)
		}
		if !slices.Contains(b.Env, "CGO_ENABLED=0") || !slices.Contains(b.Flags, "-trimpath") {
			t.Errorf("the same commit may give other bytes elsewhere: %q, %q", b.Env, b.Flags)
		}
		read(path.Join(b.Dir, b.Main, "main.go"))
	}
	// The linker ignores a variable that is not there.
	var stamped []string
	for _, m := range regexp.MustCompile(`quotabench/internal/kit/version\.(\w+)=`).FindAllStringSubmatch(strings.Join(r.Builds[0].Ldflags, "\n"), -1) {
		stamped = append(stamped, m[1])
	}
	if declared := "var " + strings.Join(stamped, ", ") + " string\n"; len(stamped) != 3 ||
		!strings.Contains(read("internal/kit/version/version.go"), declared) {
		t.Errorf("internal/kit/version/version.go has no %q", declared)
	}
	makefile := read("Makefile")
	recipe := regexp.MustCompile(`(?m)^man:.*\n(?:\t.*\n)+`).FindString(makefile)
	if recipe == "" || r.Before.Hooks[0] != "make man" {
		t.Fatalf("what lies next to the program is written by %q", r.Before.Hooks)
	}
	for _, f := range r.Archives[0].Files {
		folder := path.Dir(f.Src)
		if folder == "." {
			read(f.Src)
		} else if !strings.Contains(recipe, folder) {
			t.Errorf("make man writes no %s", folder)
		}
	}
	// The recipe of publish takes the notes of a release from its section.
	if !regexp.MustCompile(`(?m)^## \d+\.\d+\.\d+\b.*\n\n\S`).MatchString(read("CHANGELOG.md")) {
		t.Error("CHANGELOG.md has no section of a version with a text")
	}
	if !strings.Contains(makefile, "\nrelease: ") || !strings.Contains(read("docs/install.md"), "make release") {
		t.Error("nothing builds a release, or no page says what does")
	}
}
