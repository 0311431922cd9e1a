package cores

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// two returns two sets of one core each that this process may use.
func two(t *testing.T) (all, first, last Set) {
	t.Helper()
	all, ok := Allowed()
	if !ok || len(all) < 2 {
		t.Skip("needs two cores")
	}
	return all, all[:1], all[len(all)-1:]
}

// of returns the cores of each thread of a process.
func of(t *testing.T, pid int) map[int]Set {
	t.Helper()
	out := map[int]Set{}
	for _, tid := range Threads(pid) {
		if s, ok := allowed(tid); ok {
			out[tid] = s
		}
	}
	if len(out) == 0 {
		t.Fatalf("process %d has no threads", pid)
	}
	return out
}

// family starts a shell with a child, and returns the numbers of both. A line on
// stdin makes it start another one.
func family(t *testing.T) (parent, child int, another func() int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "sleep 60 & echo $!; while read line; do sleep 60 & echo $!; done")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	next := func() int {
		if !lines.Scan() {
			t.Fatalf("the shell ended: %v", lines.Err())
		}
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return cmd.Process.Pid, next(), func() int {
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		return next()
	}
}

func TestConfine(t *testing.T) {
	all, _, last := two(t)
	parent, child, another := family(t)
	if tree := Tree(parent); !slices.Equal(tree, []int{parent, child}) {
		t.Errorf("the tree of %d is %v, want its child %d too", parent, tree, child)
	}
	if err := Confine(parent, last); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{parent, child, another()} {
		for tid, s := range of(t, pid) {
			if !slices.Equal(s, last) {
				t.Errorf("thread %d of process %d may use %v, want %v", tid, pid, s, last)
			}
		}
	}
	if s, _ := Allowed(); !slices.Equal(s, all) {
		t.Errorf("this process may use %v, want %v as before", s, all)
	}
	if err := Confine(parent, all); err != nil {
		t.Fatal(err)
	}
	if s, _ := AllowedTo(child); !slices.Equal(s, all) {
		t.Errorf("the child may use %v, want %v again", s, all)
	}
}

func TestConfineRefuses(t *testing.T) {
	all, ok := Allowed()
	if !ok {
		t.Skip("the system does not tell its cores")
	}
	parent, _, _ := family(t)
	if err := Confine(parent, nil); err == nil {
		t.Error("no core at all is taken")
	}
	if err := Confine(parent, Set{most - 1}); err == nil || !strings.Contains(err.Error(), "1023") {
		t.Errorf("a core that there is not: %v", err)
	}
	if _, err := ConfineSelf(Set{most - 1}); err == nil {
		t.Error("a core that there is not is taken for this process")
	}
	if s, _ := Allowed(); !slices.Equal(s, all) {
		t.Errorf("this process may use %v after an error, want %v", s, all)
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := Confine(cmd.Process.Pid, all); err == nil {
		t.Error("a process that has ended is confined")
	}
}

// TestConfineSelf confines threads there are, and those that begin later. A thread
// with cores of its own gets these back.
func TestConfineSelf(t *testing.T) {
	all, first, last := two(t)
	own := make(chan int)
	end := make(chan bool)
	var threads sync.WaitGroup
	hold := func(s Set) {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if s != nil {
			mask, err := maskOf(s)
			if err == nil {
				err = unix.SchedSetaffinity(0, mask)
			}
			if err != nil {
				t.Error(err)
			}
		}
		own <- unix.Gettid()
		<-end
	}
	threads.Go(func() { hold(last) })
	special := <-own
	free, err := ConfineSelf(first)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		threads.Go(func() { hold(nil) })
		<-own
	}
	confined := of(t, os.Getpid())
	if err := free(); err != nil {
		t.Error(err)
	}
	freed := of(t, os.Getpid())
	close(end)
	threads.Wait()
	if len(confined) < 20 {
		t.Errorf("%d threads, want those begun at least", len(confined))
	}
	for tid, s := range confined {
		if !slices.Equal(s, first) {
			t.Errorf("thread %d may use %v, want %v", tid, s, first)
		}
	}
	for tid, s := range freed {
		want := all
		if tid == special {
			want = last
		}
		if !slices.Equal(s, want) {
			t.Errorf("thread %d may use %v afterwards, want %v", tid, s, want)
		}
	}
}

func TestAdjacent(t *testing.T) {
	all, ok := Allowed()
	if !ok {
		t.Skip("the system does not tell its cores")
	}
	if got := Adjacent(all); !slices.Equal(Of(got...), all) {
		t.Errorf("%v is not an order of %v", got, all)
	}
	if got := Adjacent(Set{5000}); !slices.Equal(got, []int{5000}) {
		t.Errorf("of a core that there is not: %v", got)
	}
}
