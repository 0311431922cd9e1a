package server

import (
	"os/exec"
	"runtime"
)

// Install is the command that installs a package here. Its name differs from one
// package manager to the next.
func Install(apt, dnf, apk, brew string) string {
	for _, m := range [][3]string{
		{"apt-get", "apt-get install", apt}, {"dnf", "dnf install", dnf}, {"apk", "apk add", apk}, {"brew", "brew install", brew},
	} {
		if _, err := exec.LookPath(m[0]); err == nil {
			return m[1] + " " + m[2]
		}
	}
	return "install its package, often called " + apt
}

// SurveyProgram says whether a program was found at a path, which is empty where it was
// not: use says how to choose it, remote what to do where servers are not started, and
// install how to get it.
func SurveyProgram(name, path, use, remote, install string) Finding {
	switch {
	case runtime.GOOS == "windows":
		return Finding{Name: name, Detail: "servers are not started on this system", Advice: remote}
	case path == "":
		return Finding{Name: name, Detail: "not found on the PATH or in the usual folders", Advice: install}
	}
	return Finding{Name: name, Found: true, Detail: path, Advice: use}
}
