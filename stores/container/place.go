package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/machine/cores"
)

var errForeign = errors.New("the container engine runs on another machine or in a virtual one: its processes are none of this machine's")

// Local reports whether the container's processes are of this machine.
func (b *box) Local() bool { return b.engine.local }

// Processes are those of the container, by this machine's numbers.
func (b *box) Processes(ctx context.Context) ([]int, error) {
	if !b.Local() {
		return nil, errForeign
	}
	ctx, cancel := context.WithTimeout(ctx, boxTimeout)
	defer cancel()
	id := b.ctr.GetContainerID()
	found, err := b.engine.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, errors.New(format.OneLine(err.Error()))
	}
	if found.Container.State == nil || found.Container.State.Pid == 0 {
		return nil, errors.New("the container has ended")
	}
	pid := found.Container.State.Pid
	if !ofContainer(pid, id) {
		return nil, fmt.Errorf("the process %d of the container is not visible here: this program runs in a container itself", pid)
	}
	return cores.Tree(pid), nil
}

// ofContainer reports whether the process with that number is, here too, of the
// container: its control group is named after it.
func ofContainer(pid int, id string) bool {
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	return err == nil && strings.Contains(string(groups), id)
}

// Confine gives the container a set of cores.
func (b *box) Confine(ctx context.Context, numbers []int) error {
	if !b.Local() {
		return errForeign
	}
	ctx, cancel := context.WithTimeout(ctx, boxTimeout)
	defer cancel()
	set := cores.Of(numbers...).String()
	if set == "" { // which the engine would take for no change
		return errors.New("confine a container to no core at all")
	}
	_, err := b.engine.client.ContainerUpdate(ctx, b.ctr.GetContainerID(), client.ContainerUpdateOptions{
		Resources: &dockercontainer.Resources{CpusetCpus: set},
	})
	if err != nil {
		return fmt.Errorf("confine a container to the cores %s: %s", set, format.OneLine(err.Error()))
	}
	return nil
}
