//go:build linux

package storefaults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
)

// process is a server that a test ends and starts again, on the same port and in the
// same folder: it takes the command from the running one.
type process struct {
	t    *testing.T
	pid  int
	addr string
	args []string
	env  []string
	dir  string
	data string
	user *syscall.Credential
	done chan struct{} // of the one that was started here; nil before
}

// processOf is the server with that number, which listens at addr.
func processOf(t *testing.T, pid int, addr string) *process {
	t.Helper()
	p := &process{t: t, pid: pid, addr: addr}
	proc := fmt.Sprintf("/proc/%d/", pid)
	command, err := os.ReadFile(proc + "cmdline")
	p.must(err)
	for _, a := range bytes.Split(bytes.TrimSuffix(command, []byte{0}), []byte{0}) {
		p.args = append(p.args, string(a))
	}
	env, err := os.ReadFile(proc + "environ")
	p.must(err)
	for _, e := range bytes.Split(bytes.TrimSuffix(env, []byte{0}), []byte{0}) {
		p.env = append(p.env, string(e))
	}
	p.dir, err = os.Readlink(proc + "cwd")
	p.must(err)
	p.data = p.dir
	if filepath.Base(p.data) != "data" {
		p.data = filepath.Join(p.dir, "data")
	}
	info, err := os.Stat(p.data)
	p.must(err)
	if owner := info.Sys().(*syscall.Stat_t); int(owner.Uid) != os.Getuid() {
		p.user = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	t.Cleanup(p.kill)
	return p
}

func (p *process) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the server at once and waits until it is gone.
func (p *process) kill() {
	pid := p.pid
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
	for syscall.Kill(pid, 0) == nil {
		_ = (clock.Wall{}).Sleep(context.Background(), time.Millisecond)
	}
	p.pid = 0
}

// start starts the server again and waits until its port is open. What shares its memory
// with the one before may live a moment longer, so it is tried several times.
func (p *process) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		if err := p.launch(); err != nil {
			return err
		}
		for {
			if c, err := net.Dial("tcp", p.addr); err == nil {
				return c.Close()
			}
			select {
			case <-p.done:
			default:
				if err := (clock.Wall{}).Sleep(ctx, 2*time.Millisecond); err != nil {
					return fmt.Errorf("%s does not answer again: %w", p.args[0], err)
				}
				continue
			}
			break
		}
		if err := (clock.Wall{}).Sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("%s ends each time that it is started: %w", p.args[0], err)
		}
	}
}

// launch starts it, so that it ends with this process.
func (p *process) launch() error {
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Dir = p.dir
	cmd.Env = p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: p.user}
	started := make(chan error)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // the signal is tied to the thread
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
			close(done)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.pid = cmd.Process.Pid
	p.done = done
	return nil
}

// remove removes what a server, which is ended, has stored in a folder.
func remove(data string) error {
	list, err := os.ReadDir(data)
	for _, e := range list {
		err = errors.Join(err, os.RemoveAll(filepath.Join(data, e.Name())))
	}
	return err
}

// restart ends the server and starts it again, with what it has stored or without.
func (p *process) restart(ctx context.Context, empty bool) error {
	p.kill()
	if empty {
		if err := remove(p.data); err != nil {
			return err
		}
	}
	return p.start(ctx)
}

// relay is an address behind which one server or another one is.
type relay struct {
	net.Listener
	to    atomic.Value // string
	conns chan net.Conn
}

// newRelay listens, and hands connections on to the address that is set.
func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, conns: make(chan net.Conn, 10_000)}
	r.to.Store(to)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); r.cut() })
	return r
}

func (r *relay) serve(c net.Conn) {
	s, err := net.Dial("tcp", r.to.Load().(string))
	if err != nil {
		_ = c.Close()
		return
	}
	r.conns <- c
	r.conns <- s
	go func() { _, _ = io.Copy(s, c); _ = s.Close() }()
	_, _ = io.Copy(c, s)
	_ = c.Close()
}

// cut ends the connections that are open.
func (r *relay) cut() {
	for {
		select {
		case c := <-r.conns:
			_ = c.Close()
		default:
			return
		}
	}
}

// turn leads to another server from now on.
func (r *relay) turn(to string) {
	r.to.Store(to)
	r.cut()
}
