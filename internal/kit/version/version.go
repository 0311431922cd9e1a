// Package version knows what a program was built from.
package version

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// Module is the path of this module.
const Module = "github.com/quotabench/quotabench"

// What a release is stamped with by the linker, since its archive of sources may lie
// outside of a repository; empty in other builds.
var releaseVersion, releaseCommit, releaseDate string

// Text is the module's version and commit, as far as the build knows them.
func Text() string {
	version, commit := Build()
	if commit != "" {
		return version + " (" + commit + ")"
	}
	return version
}

// Build is the version and the commit; "" if the build does not know it.
func Build() (version, commit string) {
	version = cmp.Or(releaseVersion, "devel")
	commit = releaseCommit
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, shortened(commit)
	}
	if text := info.Main.Version; releaseVersion == "" && text != "" && text != "(devel)" {
		version = text
	}
	commit = cmp.Or(commit, buildSetting(info, "vcs.revision"))
	commit = shortened(commit)
	if buildSetting(info, "vcs.modified") == "true" {
		commit += "+changes"
	}
	return version, commit
}

// Published is the version of this module that others can require; "" if the program was built from a clone.
func Published() string {
	if releaseVersion != "" && !strings.Contains(releaseVersion, "-snapshot-") {
		return "v" + releaseVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range append(info.Deps, &info.Main) {
			if module.Path == Module && module.Replace == nil && module.Sum != "" { // the sum is of a download
				return module.Version
			}
		}
	}
	return ""
}

// Date is when what was built was committed, in RFC 3339; empty if the build does
// not know.
func Date() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(releaseDate, buildSetting(info, "vcs.time"))
	}
	return releaseDate
}

// GoRun is the command that has built and started this program, e.g. "go run example.org/limits";
// "" if it was not go run, or was given files and not a package.
func GoRun() string {
	at, err := os.Executable()
	info, ok := debug.ReadBuildInfo()
	if err != nil || !ok || info.Path == "command-line-arguments" || !strings.Contains(filepath.ToSlash(at), "/go-build") {
		return ""
	}
	return "go run " + info.Path
}

func buildSetting(info *debug.BuildInfo, key string) string {
	for _, setting := range info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

func shortened(commit string) string { return commit[:min(len(commit), 12)] }
