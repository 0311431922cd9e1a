//go:build unix && !linux

package server

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// setDeathSignal does nothing: only Linux ends the children of a killed process.
// Elsewhere the next Open does.
func setDeathSignal(*syscall.SysProcAttr, os.Signal) {}

// awaitEnd does not wait.
func awaitEnd(int) bool { return false }

func killMarked(string) {}

// ProcessIdentity names a living process in a way that no later one with the
// same number shares: by when it started.
func ProcessIdentity(pid int) (string, error) {
	cmd := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid))
	cmd.Env = Env()
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	state, started, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !ok || strings.HasPrefix(state, "Z") {
		return "", errors.New("the process has ended")
	}
	return strings.Join(strings.Fields(started), "-"), nil
}

// ProcessNamespace: there is one.
func ProcessNamespace() (string, error) { return "", nil }

// CPUOfTree is not known here.
func CPUOfTree(int) (time.Duration, bool) { return 0, false }
