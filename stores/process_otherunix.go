//go:build unix && !linux

package stores

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

// processIdentity names a living process in a way that no later one with the
// same number shares: by when it started.
func processIdentity(pid int) (string, error) {
	cmd := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid))
	cmd.Env = childEnv()
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

// processNamespace: there is one.
func processNamespace() (string, error) { return "", nil }

// cpuOfTree is not known here.
func cpuOfTree(int) (time.Duration, bool) { return 0, false }
