//go:build !unix

package stores

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
	stopRedis    os.Signal = os.Kill
	stopPostgres os.Signal = os.Kill
)

type account struct{ name string }

func serverAccount() (*account, error) { return nil, errNoProcesses }

func (a *account) chown(string) error { return nil }

func setSysProcAttr(*exec.Cmd, os.Signal, *account) {}

func killGroup(p *os.Process) { _ = p.Kill() }

func endForeign(int, func() bool) {}

func tryLock(string) (*os.File, error) { return nil, errNoProcesses }

func lockExisting(string) (*os.File, error) { return nil, errNoProcesses }

func ownedByUs(fs.FileInfo) bool { return false }

func processIdentity(int) (string, error) { return "", errNoProcesses }

func processNamespace() (string, error) { return "", errNoProcesses }

func cpuOfTree(int) (time.Duration, bool) { return 0, false }
