package cli

import "runtime/debug"

// Version is the module's version and commit, as far as the build knows them.
func Version() string {
	version, commit := buildVersion()
	if commit != "" {
		return version + " (" + commit + ")"
	}
	return version
}

func buildVersion() (version, commit string) {
	version = "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		version = v
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if len(commit) > 12 {
		commit = commit[:12]
	}
	if dirty {
		commit += "+changes"
	}
	return version, commit
}
