//go:build unix

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Signals that end a server. Its data is thrown away, so PostgreSQL need not
// write a checkpoint first as it would on SIGINT; unlike a kill, SIGQUIT still
// lets it end its own children and give its shared memory back.
const (
	StopRedis    = syscall.SIGTERM
	StopPostgres = syscall.SIGQUIT
)

// Account is a user whom a child runs as.
type Account struct {
	Name     string
	uid, gid uint32
}

// ServiceAccount is the first of these users that this machine has, for programs
// that should not run as root: nil if we are not root.
func ServiceAccount(names ...string) (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &Account{name, uint32(uid), uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("this machine has no user %s to run the server as", strings.Join(names, " or "))
}

// Chown gives a file to the account; a nil one leaves it to us.
func (a *Account) Chown(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// setSysProcAttr has cmd start in a process group of its own, so that the terminal's
// Ctrl-C reaches us alone and we end our children in order. On Linux the kernel
// sends it the signal death when this process dies, however it does.
func setSysProcAttr(cmd *exec.Cmd, death os.Signal, account *Account) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if account != nil {
		attr.Credential = &syscall.Credential{Uid: account.uid, Gid: account.gid}
	}
	setDeathSignal(attr, death)
	cmd.SysProcAttr = attr
}

// endWithUs has the kernel ask a command to end when this process dies, however it does, on
// Linux. The thread that starts it must not end before it does.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	setDeathSignal(cmd.SysProcAttr, syscall.SIGTERM)
}

// killGroup kills a child of ours that leads its process group, and the group.
func killGroup(process *os.Process) {
	// Not yet waited for, so the number is still its own.
	if err := syscall.Kill(-process.Pid, syscall.SIGKILL); err != nil {
		_ = process.Kill()
	}
}

// Signal stops processes of ours where they are, or lets them go on.
func Signal(pids []int, stop bool) (err error) {
	signal := syscall.SIGCONT
	if stop {
		signal = syscall.SIGSTOP
	}
	for _, pid := range pids {
		if e := syscall.Kill(pid, signal); e != syscall.ESRCH {
			err = errors.Join(err, e)
		}
	}
	return err
}

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// endForeign ends a process that is not our child: first as one asks
// PostgreSQL, which Redis does not survive either, then for good.
func endForeign(pid int, alive func() bool) {
	for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		_ = syscall.Kill(pid, sig)
		for range 200 {
			if !alive() {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// tryLock creates a file and locks it without waiting.
func tryLock(path string) (*os.File, error) {
	return lock(path, os.O_CREATE|os.O_EXCL)
}

// lockExisting locks a file that Exists, without waiting and without following
// a symbolic link.
func lockExisting(path string) (*os.File, error) {
	return lock(path, syscall.O_NOFOLLOW)
}

func lock(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func ownedByUs(fileInfo fs.FileInfo) bool {
	stat_t, ok := fileInfo.Sys().(*syscall.Stat_t)
	return ok && int(stat_t.Uid) == os.Geteuid()
}
