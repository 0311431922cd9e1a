package coordinate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/quotabench/quotabench/internal/stores/server"
)

// Variable names the environment variable that stands for the URL of a coordinator, whose token
// others would see on a command line.
const Variable = "QUOTABENCH_COORDINATOR"

// Processes are generators on this machine, which are this program started again.
type Processes struct {
	all     []*server.Child
	logs    []string // where what they printed goes
	watches sync.WaitGroup
}

// LogName is the file, in the directory of a generator that was started here, that has what it printed.
const LogName = "log.txt"

// StartProcesses starts a generator for each directory, to whose arguments it adds those that say which
// one it is. If one cannot be started those before it are ended.
func (c *Coordinator) StartProcesses(join string, dirs, args []string) (*Processes, error) {
	p := &Processes{}
	program, err := os.Executable()
	for i := 0; i < len(dirs) && err == nil; i++ {
		own := append([]string{"run", "--generator", fmt.Sprintf("%d/%d", i+1, len(dirs)), "--out", dirs[i], "--quiet"}, args...)
		p.logs = append(p.logs, filepath.Join(dirs[i], LogName))
		err = p.start(program, join, own, func(words string) { c.Gone(i+1, words) })
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("start a generator: %w", err)
	}
	return p, nil
}

func (p *Processes) start(program, join string, args []string, gone func(words string)) error {
	dir, err := server.NewDir("")
	if err != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), Variable+"="+join)
	child, err := server.Start(cmd, dir, os.Kill, syscall.SIGTERM, nil)
	if err != nil {
		return err
	}
	p.all = append(p.all, child)
	p.watches.Go(func() {
		<-child.Done()
		gone(child.LastWords())
	})
	return nil
}

// tidying is how long a process has to end after its generator has.
const tidying = 10 * time.Second

// Close waits until the processes have ended, and kills those that do not.
func (p *Processes) Close() {
	var closing sync.WaitGroup
	for i, c := range p.all {
		closing.Go(func() {
			select {
			case <-c.Done():
			case <-time.After(tidying):
			}
			// What it printed is for those who look for a reason, and the next run removes its directory.
			_ = os.MkdirAll(filepath.Dir(p.logs[i]), 0o755)
			_ = os.WriteFile(p.logs[i], []byte(c.Output()), 0o644)
			_ = c.Close()
		})
	}
	closing.Wait()
	p.watches.Wait()
}
