package server

import (
	"bufio"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestCPUOfYoungChildren: what many young processes have used is found, though each has
// used less than the hundredth of a second that the system counts in.
func TestCPUOfYoungChildren(t *testing.T) {
	const children = 30
	c := exec.CommandContext(t.Context(), "sh", "-c", `
		for n in $(seq 30); do
			sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done
				read ns rest < /proc/$$/schedstat; echo $ns; exec sleep 600' &
		done
		wait`)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	})
	var said time.Duration // by the children, when they were done
	lines := bufio.NewScanner(out)
	for n := 0; n < children && lines.Scan(); n++ {
		ns, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		said += time.Duration(ns)
	}
	got, ok := CPUOfTree(c.Process.Pid)
	if !ok {
		t.Fatal("the CPU time is not known")
	}
	if said == 0 {
		t.Fatal("the children used nothing")
	}
	if got < said {
		t.Errorf("%v, want at least the %v that %d children say they used", got, said, children)
	}
}
