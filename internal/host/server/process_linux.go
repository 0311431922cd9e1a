package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quotabench/quotabench/internal/host/cores"
)

func setDeathSignal(attr *syscall.SysProcAttr, death os.Signal) {
	if signal, ok := death.(syscall.Signal); ok {
		attr.Pdeathsig = signal
	}
}

// awaitEnd waits until a child has ended, and reports whether it has: its number is still its own then.
func awaitEnd(pid int) bool {
	var err error = unix.EINTR
	for err == unix.EINTR {
		err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	return err == nil
}

// sweeps is how often processes with a mark are looked for: one that is found may have started another one meanwhile.
const sweeps = 20

// killMarked kills all processes that have the variable in their environment.
func killMarked(mark string) {
	for range sweeps {
		found := false
		folders, _ := os.ReadDir("/proc") // which is there on every Linux
		for _, folder := range folders {
			pid, err := strconv.Atoi(folder.Name())
			if err != nil {
				continue
			}
			environment, _ := os.ReadFile("/proc/" + folder.Name() + "/environ") // other users' cannot be read
			if bytes.Contains(environment, []byte(mark)) {
				found = unix.Kill(pid, unix.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
	}
}

// Fields of /proc/<pid>/stat after the program's name, as proc(5) numbers them.
const (
	statState     = 3
	statParent    = 4
	statUser      = 14
	statSystem    = 15
	statChildUser = 16
	statChildSys  = 17
	statStart     = 22
)

// procStat reads /proc/<pid>/stat; the result is indexed as proc(5) counts.
func procStat(pid int) ([]string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	// The name in parentheses may contain anything, also parentheses.
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return nil, fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	texts := []string{"", "", ""}
	for _, x := range bytes.Fields(data[i+1:]) {
		texts = append(texts, string(x))
	}
	if len(texts) <= statStart {
		return nil, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	return texts, nil
}

// ProcessIdentity names a living process in a way that no later one with the
// same number shares: by when it started, and in which boot.
func ProcessIdentity(pid int) (string, error) {
	texts, err := procStat(pid)
	if err != nil {
		return "", err
	}
	if texts[statState] == "Z" || texts[statState] == "X" {
		return "", errors.New("the process has ended")
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return texts[statStart] + "@" + string(bytes.TrimSpace(boot)), nil
}

// ProcessNamespace is where the numbers of processes are what they are here.
func ProcessNamespace() (string, error) { return os.Readlink("/proc/self/ns/pid") }

// CPUOfTree is the CPU time of a process, of its children, and of those
// children that have ended.
func CPUOfTree(pid int) (time.Duration, bool) {
	texts, err := procStat(pid)
	if err != nil {
		return 0, false
	}
	used := cpuOf(pid, texts) + ticks(texts, statChildUser, statChildSys)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	parent := strconv.Itoa(pid)
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if c, err := procStat(id); err == nil && c[statParent] == parent {
			used += cpuOf(id, c)
		}
	}
	return used, true
}

// cpuOf is the CPU time of one process. The system rounds that down to hundredths of a
// second, which is all that a young process has used; of threads that still run it says
// nanoseconds. The larger figure is the nearer one.
func cpuOf(pid int, stat []string) time.Duration {
	exact, _ := cores.ThreadTimes(pid)
	return max(ticks(stat, statUser, statSystem), exact)
}

// ticks adds up fields that the kernel reports in hundredths of a second, as it does on
// every architecture that Go runs on, whatever it counts in.
func ticks(texts []string, fields ...int) (sum time.Duration) {
	for _, i := range fields {
		v, _ := strconv.ParseInt(texts[i], 10, 64) // what is no number counts nothing
		sum += time.Duration(v) * 10 * time.Millisecond
	}
	return sum
}
