package coordinate

import (
	"fmt"
	"os"
	"os/exec"
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
	watches sync.WaitGroup
}

// StartProcesses starts a process for each list of arguments. The coordinator, at the URL, is told of
// one that ends. If one cannot be started those before it are ended.
func (c *Coordinator) StartProcesses(join string, arguments [][]string) (*Processes, error) {
	p := &Processes{}
	program, err := os.Executable()
	for i := 0; i < len(arguments) && err == nil; i++ {
		err = p.start(program, join, arguments[i], func(words string) { c.Gone(i+1, words) })
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
	child, err := server.Start(cmd, dir, os.Interrupt, syscall.SIGTERM, nil)
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
const tidying = 5 * time.Second

// Close waits until the processes have ended, and ends those that do not.
func (p *Processes) Close() {
	var closing sync.WaitGroup
	for _, c := range p.all {
		closing.Go(func() {
			select {
			case <-c.Done():
			case <-time.After(tidying):
			}
			_ = c.Close() // only its directory may stay, which the next run removes
		})
	}
	closing.Wait()
	p.watches.Wait()
}
