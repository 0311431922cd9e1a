package server

import "os/exec"

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
