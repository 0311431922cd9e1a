package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// graceful is how long a child has to end by itself once it was asked to.
const graceful = 10 * time.Second

// child is a process of ours with its private directory.
type child struct {
	cmd  *exec.Cmd
	dir  *privateDir
	stop os.Signal // asks it to end
	done <-chan struct{}
}

// startProcess starts cmd in a process group of its own, so that the terminal's
// Ctrl-C reaches us alone and we end our children in order. On Linux the kernel
// sends it the signal death when this process dies, however it does.
func startProcess(cmd *exec.Cmd, death os.Signal, user *account) (done <-chan struct{}, result *error, err error) {
	setSysProcAttr(cmd, death, user)
	ended := make(chan struct{})
	started := make(chan error)
	var waited error
	go func() {
		// The signal is tied to the thread that forked, not to the process:
		// the thread must not end before the child does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		waited = cmd.Wait()
		close(ended)
	}()
	if err := <-started; err != nil {
		return nil, nil, err
	}
	return ended, &waited, nil
}

// runProcess runs cmd to its end and returns what it printed. When ctx is done
// it is killed with all its children.
func runProcess(ctx context.Context, cmd *exec.Cmd, user *account) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	done, result, err := startProcess(cmd, os.Kill, user)
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

// startChild starts a server whose files and log are in dir, and records it
// there. The child owns dir from then on, also when an error is returned.
func startChild(cmd *exec.Cmd, dir *privateDir, stop, death os.Signal, user *account) (*child, error) {
	log, err := os.Create(filepath.Join(dir.path, "log"))
	if err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	done, _, err := startProcess(cmd, death, user)
	if err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	c := &child{cmd: cmd, dir: dir, stop: stop, done: done}
	if err := dir.record(cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// ended reports whether the process is gone.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// close ends the process, first by asking, and removes its directory.
func (c *child) close() error {
	if !c.ended() {
		_ = c.cmd.Process.Signal(c.stop) // fails where it ends at this moment
		t := time.NewTimer(graceful)
		defer t.Stop()
		select {
		case <-c.done:
		case <-t.C:
			killGroup(c.cmd.Process)
			<-c.done
		}
	}
	return c.dir.remove()
}

// lastWords is the end of the child's log, on one line.
func (c *child) lastWords() string {
	b, err := os.ReadFile(filepath.Join(c.dir.path, "log"))
	if err != nil {
		return ""
	}
	return lastLines(string(b), 3)
}

// lastLines makes one line of a text's last n.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return oneLine(strings.Join(lines[max(0, len(lines)-n):], "\n"))
}

// startOnFreePort calls start with free loopback ports until one works or the
// reason is not the port.
func startOnFreePort(start func(port int) error) error {
	var err error
	for range 5 {
		var port int
		if port, err = freePort(); err != nil {
			return err
		}
		if err = start(port); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// childEnv is the environment of every child: nothing of ours but where
// programs and temporary files are, so that neither settings (PGPORT) nor
// passwords get in.
var childEnv = sync.OnceValue(func() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SystemRoot"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
})
