package cli

import (
	"cmp"
	"runtime/debug"
)

// What a release is stamped with by the linker, since its archive of sources may lie
// outside of a repository; empty in other builds.
var releaseVersion, releaseCommit, releaseDate string

// Version is the module's version and commit, as far as the build knows them.
func Version() string {
	version, commit := buildVersion()
	if commit != "" {
		return version + " (" + commit + ")"
	}
	return version
}

func buildVersion() (version, commit string) {
	version, commit = cmp.Or(releaseVersion, "devel"), releaseCommit
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, shortened(commit)
	}
	if v := info.Main.Version; releaseVersion == "" && v != "" && v != "(devel)" {
		version = v
	}
	commit = cmp.Or(commit, buildSetting(info, "vcs.revision"))
	if commit = shortened(commit); buildSetting(info, "vcs.modified") == "true" {
		commit += "+changes"
	}
	return version, commit
}

// buildDate is when what was built was committed, in RFC 3339; empty where the build does
// not know.
func buildDate() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(releaseDate, buildSetting(info, "vcs.time"))
	}
	return releaseDate
}

func buildSetting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func shortened(commit string) string { return commit[:min(len(commit), 12)] }
