package server

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
)

// graceful is how long a child has to end by itself once it was asked to.
const graceful = 10 * time.Second

// Child is a process of ours with its private directory.
type Child struct {
	run  atomic.Pointer[running]
	dir  *Dir
	stop os.Signal // asks it to end
	kept cores.Set // that it was confined to when it was killed
}

// running is the process; another one after [Child.Again].
type running struct {
	cmd  *exec.Cmd
	done <-chan struct{}
}

// markVariable has in the environment of a child, and of all that it starts, what tells them from other processes.
const markVariable = "QUOTABENCH_STARTED_BY"

// launch starts a command that has its attributes. whole has the end of the process be that of its group, and of what
// has left the group, on Linux.
func launch(cmd *exec.Cmd, whole bool) (done <-chan struct{}, result *error, err error) {
	mark := markVariable + "=" + crand.Text()
	if whole {
		cmd.Env = append(cmd.Environ(), mark)
	}
	ended := make(chan struct{})
	started := make(chan error)
	var waited error
	go func() {
		// The signal is tied to the thread that forked, not to the process:
		// the thread must not end before the child does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		forking.Lock()
		err := cmd.Start()
		forking.Unlock()
		started <- err
		if err != nil {
			return
		}
		if whole && awaitEnd(cmd.Process.Pid) {
			killGroup(cmd.Process)
			killMarked(mark)
		}
		waited = cmd.Wait()
		close(ended)
	}()
	if err := <-started; err != nil {
		return nil, nil, err
	}
	return ended, &waited, nil
}

// Run runs cmd to its end and returns what it printed. When ctx is done
// it is killed with all its children.
func Run(ctx context.Context, cmd *exec.Cmd, user *Account) (string, error) {
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	setSysProcAttr(cmd, os.Kill, user)
	done, result, err := launch(cmd, false)
	if err != nil {
		return "", err
	}
	select {
	case <-done:
		return out.String(), *result
	case <-ctx.Done():
		killGroup(cmd.Process)
		<-done
		return out.String(), ctx.Err()
	}
}

// Start starts a server whose files and log are in dir, and records it there. The child owns dir from then on, also
// when an error is returned. If it stops by os.Kill, its group ends with it, on Linux.
func Start(cmd *exec.Cmd, dir *Dir, stop, death os.Signal, user *Account) (*Child, error) {
	log, err := dir.log()
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout = log
	cmd.Stderr = log
	setSysProcAttr(cmd, death, user)
	done, _, err := launch(cmd, stop == os.Kill)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	child := &Child{dir: dir, stop: stop}
	child.run.Store(&running{cmd, done})
	if err := dir.record(cmd.Process.Pid); err != nil {
		if _, gone := ProcessIdentity(cmd.Process.Pid); gone == nil {
			return nil, errors.Join(err, child.Close())
		}
		// A child that ended at once needs no record, and its last words say why.
		select {
		case <-done:
		case <-time.After(graceful):
			return nil, errors.Join(err, child.Close())
		}
	}
	return child, nil
}

// log is the file of a child's log, from its beginning.
func (d *Dir) log() (*os.File, error) { return os.Create(filepath.Join(d.Path, "log")) }

// PID is the number of the process; 0 of no child.
func (c *Child) PID() int {
	if c == nil {
		return 0
	}
	return c.run.Load().cmd.Process.Pid
}

// Ended reports whether the process is gone.
func (c *Child) Ended() bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// Close ends the process, first by asking, and removes its directory. If it stops by os.Kill, so does its group at
// once.
func (c *Child) Close() error {
	if process := c.run.Load().cmd.Process; !c.Ended() {
		if c.stop == os.Kill {
			killGroup(process)
		}
		_ = process.Signal(c.stop) // fails if it ends at this moment
		select {
		case <-c.Done():
		case <-time.After(graceful):
			killGroup(process)
			<-c.Done()
		}
	}
	return c.dir.Remove()
}

// Done is closed when the process is gone.
func (c *Child) Done() <-chan struct{} { return c.run.Load().done }

// Args are the program and its arguments, which every user of the machine can read.
func (c *Child) Args() []string { return c.run.Load().cmd.Args }

// LastWords is the end of the child's log, on one line.
func (c *Child) LastWords() string { return LastLines(c.Output(), 3) }

// Output is the child's log, which has no end while it runs; empty if there is none.
func (c *Child) Output() string {
	data, _ := os.ReadFile(filepath.Join(c.dir.Path, "log"))
	return string(data)
}

// LastLines makes one line of a text's last n.
func LastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return format.OneLine(strings.Join(lines[max(0, len(lines)-n):], "\n"))
}

// OnFreePort calls start with free loopback ports until one works or the reason is not the port. The port that is so
// much above it is free as well; 0 for a server that takes one port.
//
// A server may listen long after its port was chosen. Until start returns, the UDP port of the same number is taken,
// which tells all processes that choose ports so.
func OnFreePort(above int, start func(port int) error) error {
	err := ErrPortTaken
	for range 5 {
		port, none := FreePort(above)
		if none != nil {
			return none
		}
		mark, taken := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if taken != nil {
			continue
		}
		err = start(port)
		_ = mark.Close()
		if !errors.Is(err, ErrPortTaken) {
			return err
		}
	}
	return err
}

// portAttempts bounds the search for two ports that are free.
const portAttempts = 100

// FreePort finds a loopback port that is free, as is the one that is that much above it; 0 for none.
func FreePort(above int) (int, error) {
	for range portAttempts {
		port, err := freePort("127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if above == 0 {
			return port, nil
		}
		if _, err := freePort(fmt.Sprintf("127.0.0.1:%d", port+above)); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find two free ports that are %d apart: there were none in %d attempts", above, portAttempts)
}

// forking keeps processes from being forked while a listener is open to find a port: until a process runs its program
// it has that listener too, which answers at a port that is believed to be free.
var forking sync.Mutex

func freePort(addr string) (int, error) {
	forking.Lock()
	defer forking.Unlock()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// Env is the environment of every child: nothing of ours but where
// programs and temporary files are, so that neither settings (PGPORT) nor
// passwords get in.
var Env = sync.OnceValue(func() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SystemRoot"} {
		if text, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+text)
		}
	}
	return env
})

// RunWithUs runs a command to its end, and has it end when this process dies.
func RunWithUs(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithUs(cmd)
	return cmd.Run()
}

// Kill ends the process and its descendants at once, as a machine ends that fails. Its directory stays, for
// [Child.Again].
func (c *Child) Kill(ctx context.Context) error {
	all, err := c.Processes(ctx)
	if err != nil {
		return err
	}
	c.kept, _ = cores.AllowedTo(c.PID())
	for _, pid := range all {
		kill(pid)
	}
	<-c.Done()
	for _, pid := range all { // what holds memory of the one before keeps PostgreSQL from starting
		for _, gone := ProcessIdentity(pid); gone == nil; _, gone = ProcessIdentity(pid) {
			if err := (clock.Wall{}).Sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// Again starts the command of a process that was killed once more, in the same directory and on the same cores,
// and asks it until it answers.
func (c *Child) Again(ctx context.Context, try func(context.Context) error) error {
	old := c.run.Load().cmd
	cmd := &exec.Cmd{Path: old.Path, Args: old.Args, Dir: old.Dir, Env: old.Env, SysProcAttr: old.SysProcAttr}
	log, err := c.dir.log()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout = log
	cmd.Stderr = log
	done, _, err := launch(cmd, false)
	if err != nil {
		return err
	}
	c.run.Store(&running{cmd, done})
	if len(c.kept) > 0 {
		_ = cores.Confine(cmd.Process.Pid, c.kept) // or it has ended, as what follows tells
	}
	if err := c.dir.record(cmd.Process.Pid); err != nil && !c.Ended() {
		return err
	}
	return Await(ctx, c, func(string) bool { return false }, try)
}
