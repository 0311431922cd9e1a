package cores

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Allowed returns the cores that the calling thread may use. ok is false if the
// system cannot tell.
func Allowed() (set Set, ok bool) { return allowed(0) }

// AllowedTo returns the cores that any thread of a process may use. ok is false if
// the system cannot tell, or if the process is gone.
func AllowedTo(pid int) (set Set, ok bool) {
	for _, tid := range Threads(pid) {
		if own, known := allowed(tid); known {
			set = Of(append(set, own...)...)
			ok = true
		}
	}
	return set, ok
}

// Threads are those of a process, by their numbers; none if it has ended. One that starts
// while they are listed may be missing.
func Threads(pid int) (out []int) {
	entries, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task")) // none of a process that has just ended
	for _, entry := range entries {
		if tid, err := strconv.Atoi(entry.Name()); err == nil {
			out = append(out, tid)
		}
	}
	return out
}

func allowed(tid int) (Set, bool) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &mask); err != nil {
		return nil, false
	}
	var set Set
	for i := range most {
		if mask.IsSet(i) {
			set = append(set, i)
		}
	}
	return set, len(set) > 0
}

func maskOf(set Set) (*unix.CPUSet, error) {
	if len(set) == 0 {
		return nil, errors.New("confine to no core at all")
	}
	var mask unix.CPUSet
	for _, n := range set {
		mask.Set(n)
	}
	return &mask, nil
}

// passes is how often the threads of a process are listed before it is given up
// that all of them are found: each pass must have met a new one.
const passes = 100

// Confine lets the process and all its descendants run on the cores alone. What
// they start later inherits that. Threads and processes that end meanwhile are no
// error.
func Confine(pid int, s Set) error {
	mask, err := maskOf(s)
	if err != nil {
		return err
	}
	n, err := everyThread(func() []int { return Tree(pid) }, func(tid int) error { return set(tid, mask, s) })
	if err == nil && n == 0 {
		err = errors.New("it is gone")
	}
	if err != nil {
		return fmt.Errorf("confine process %d: %w", pid, err)
	}
	return nil
}

func set(tid int, mask *unix.CPUSet, s Set) error {
	switch err := unix.SchedSetaffinity(tid, mask); {
	case err == nil, errors.Is(err, unix.ESRCH): // it has just ended
		return nil
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("none of the cores %s may be used", s)
	default:
		return err
	}
}

// ConfineSelf lets this process, without its children, run on the cores alone.
// Threads that it starts later inherit that. free takes it back: threads of before
// get their own cores again, and those begun since get the calling thread's of
// before. If an error is returned all is as it was.
func ConfineSelf(s Set) (free func() error, err error) {
	mask, err := maskOf(s)
	if err != nil {
		return nil, err
	}
	self := func() []int { return []int{os.Getpid()} }
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("read the cores of this process: %w", err)
	}
	own := map[int]unix.CPUSet{}
	free = func() error {
		_, err := everyThread(self, func(tid int) error {
			old, ok := own[tid]
			if !ok {
				old = before
			}
			return ignoreEnded(unix.SchedSetaffinity(tid, &old))
		})
		return err
	}
	_, err = everyThread(self, func(tid int) error {
		var old unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &old); err != nil {
			return ignoreEnded(err)
		}
		// A thread begun by one that is confined already inherited that.
		if old != *mask {
			own[tid] = old
		}
		return set(tid, mask, s)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("confine this process: %w", err), free())
	}
	return free, nil
}

// everyThread calls do for all threads of the processes, those too that start meanwhile, and
// returns how many there were.
func everyThread(processes func() []int, do func(tid int) error) (n int, err error) {
	seen := map[int]bool{}
	for range passes {
		before := len(seen)
		for _, pid := range processes() {
			for _, tid := range Threads(pid) {
				if seen[tid] {
					continue
				}
				if err := do(tid); err != nil {
					return before, err
				}
				seen[tid] = true
			}
		}
		if len(seen) == before {
			return before, nil
		}
	}
	return len(seen), errors.New("it starts threads without end")
}

func ignoreEnded(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// ThreadTimes are how long the living threads of a process ran, together, and how long they
// were ready to run and did not.
func ThreadTimes(pid int) (ran, waited time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is well-formed
	for _, path := range threads {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has just ended
		}
		if times := strings.Fields(string(data)); len(times) >= 2 {
			first, _ := strconv.ParseInt(times[0], 10, 64) // what is no number counts nothing
			second, _ := strconv.ParseInt(times[1], 10, 64)
			ran = ran + time.Duration(first)
			waited = waited + time.Duration(second)
		}
	}
	return ran, waited
}

// Tree returns a process and its descendants, parents before their children. It
// is empty if the process is gone.
func Tree(pid int) []int {
	if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); err != nil {
		return nil
	}
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children(tree[i])...)
	}
	return tree
}

// children are the processes that the threads of a process started.
func children(pid int) (out []int) {
	for _, tid := range Threads(pid) {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, tid)) // nothing of a thread that has just ended
		for text := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(text); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// Adjacent returns the cores of s in an order in which those that share a physical
// core stand side by side, and so do those of one package. If the system does
// not tell it is the order of their numbers.
func Adjacent(set Set) []int {
	type place struct{ pkg, core, n int }
	places := make([]place, len(set))
	for i, n := range set {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology", n)
		pkg, err1 := readInt(filepath.Join(dir, "physical_package_id"))
		core, err2 := readInt(filepath.Join(dir, "core_id"))
		if err1 != nil || err2 != nil {
			return set
		}
		places[i] = place{pkg, core, n}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(a.pkg-b.pkg, a.core-b.core, a.n-b.n)
	})
	out := make([]int, len(places))
	for i, place := range places {
		out[i] = place.n
	}
	return out
}

func readInt(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}
