//go:build !unix

package server

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

// Servers are not started on this system: it offers no lock that a killed
// process gives back together with a way to end a server in order.
var errNoProcesses = errors.New("servers are not started on this system: use a URL or embedded")

var (
	StopRedis    os.Signal = os.Kill
	StopPostgres os.Signal = os.Kill
)

type Account struct{ Name string }

func ServiceAccount(...string) (*Account, error) { return nil, errNoProcesses }

func (a *Account) Chown(string) error { return nil }

func setSysProcAttr(*exec.Cmd, os.Signal, *Account) {}

func endWithUs(*exec.Cmd) {}

func Signal([]int, bool) error { return errNoProcesses }

func kill(int) {}

func killGroup(p *os.Process) { _ = p.Kill() }

func awaitEnd(int) bool { return false }

func killMarked(string) {}

func endForeign(int, func() bool) {}

func tryLock(string) (*os.File, error) { return nil, errNoProcesses }

func lockExisting(string) (*os.File, error) { return nil, errNoProcesses }

func ownedByUs(fs.FileInfo) bool { return false }

func ProcessIdentity(int) (string, error) { return "", errNoProcesses }

func ProcessNamespace() (string, error) { return "", errNoProcesses }

func CPUOfTree(int) (time.Duration, bool) { return 0, false }
