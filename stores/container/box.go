package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
)

// pullTimeout bounds how long a registry may take to deliver an image.
const pullTimeout = 10 * time.Minute

// box is a server in a container of ours.
type box struct {
	engine *engine
	ctr    *testcontainers.DockerContainer // nil if it could not be made
	dir    *server.Dir
	// host and port are where it is reached.
	host string
	port int
}

// Run runs a container, on a free port.
func (e *engine) Run(ctx context.Context, spec server.ContainerSpec, ready func(server.Container) error) error {
	e.RemoveOrphans(ctx)
	if err := e.provide(ctx, spec.Image, !spec.NoPull); err != nil {
		return err
	}
	once := func(port int) error {
		box, err := e.start(ctx, port, spec)
		if err != nil {
			return err
		}
		if err := ready(box); err != nil {
			return errors.Join(err, box.Close())
		}
		return nil
	}
	var err error
	if e.shared {
		err = server.OnFreePort(0, once)
	} else {
		err = once(spec.Port) // the engine finds one for us
	}
	return format.Wrapf(err, "run a container of %s", spec.Image)
}

// start starts a container whose server listens on the port. It is ours to
// close if no error is returned.
func (e *engine) start(ctx context.Context, port int, spec server.ContainerSpec) (*box, error) {
	dir, err := server.NewDir(spec.Dir)
	if err != nil {
		return nil, err
	}
	labels, err := ownerLabels()
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	// First of all, so that there is no moment to be killed in without a trace.
	if err := dir.MarkContainer(); err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	b := &box{engine: e, dir: dir, host: "127.0.0.1", port: port}
	inner := network.MustParsePort(strconv.Itoa(port) + "/tcp")
	opts := append(e.options(b, spec, inner), testcontainers.WithLabels(labels))
	// An engine goes on to make a container whose client has given up.
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.OpenTimeout)
	defer cancel()
	b.ctr, err = testcontainers.Run(making, spec.Image, opts...)
	switch {
	case err != nil:
		err = errors.New(strings.TrimPrefix(format.OneLine(err.Error()), "generic container: "))
	case ctx.Err() != nil:
		err = ctx.Err()
	case !e.shared:
		err = b.findPort(ctx, e, inner)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// options of a container whose server listens on the inner port.
func (e *engine) options(b *box, spec server.ContainerSpec,
	inner network.Port) (opts []testcontainers.ContainerCustomizer) {
	listen := b.host
	if !e.shared {
		listen = "0.0.0.0" // of the container
		opts = append(opts, testcontainers.WithExposedPorts(inner.String()))
	}
	for path, text := range maps.All(spec.Files) {
		file := testcontainers.ContainerFile{
			Reader: strings.NewReader(text), ContainerFilePath: path, FileMode: 0o444,
		}
		opts = append(opts, testcontainers.WithFiles(file))
	}
	return append(opts,
		testcontainers.WithCmd(spec.Command(listen, b.port)...),
		testcontainers.WithEnv(spec.Env),
		testcontainers.WithHostConfigModifier(func(config *dockercontainer.HostConfig) {
			// PostgreSQL's processes share memory; the engine's 64 MiB are few.
			config.ShmSize = 256 << 20
			if e.shared {
				config.NetworkMode = network.NetworkHost
			} else if e.loopback() {
				config.PortBindings = network.PortMap{inner: {{HostIP: netip.MustParseAddr(b.host), HostPort: "0"}}}
			}
		}),
	)
}

// findPort asks where the engine published the port.
func (b *box) findPort(ctx context.Context, e *engine, inner network.Port) error {
	mapped, err := b.ctr.MappedPort(ctx, inner.String())
	if err != nil {
		return err
	}
	b.port = int(mapped.Num())
	if !e.loopback() {
		b.host = e.host
	}
	return nil
}

// Detail describes a container of the image on one line.
func (e *engine) Detail(image string) string {
	if e.shared {
		return "container of " + image + " on this machine's network"
	}
	return "container of " + image +
		" behind a published port, which costs about half the throughput of a process: compare with the like only"
}

// boxTimeout bounds a question to the engine about a container.
const boxTimeout = 10 * time.Second

// PID is 0: the process is the engine's.
func (b *box) PID() int { return 0 }

// Host is where the server is reached.
func (b *box) Host() string { return b.host }

// Port is where the server is reached.
func (b *box) Port() int { return b.port }

// Ended reports whether the container is gone by itself.
func (b *box) Ended() bool {
	ctx, cancel := context.WithTimeout(context.Background(), boxTimeout)
	defer cancel()
	state, err := b.ctr.State(ctx)
	return err == nil && !state.Running
}

// LastWords is the end of the log, on one line.
func (b *box) LastWords() string {
	ctx, cancel := context.WithTimeout(context.Background(), boxTimeout)
	defer cancel()
	log, err := b.ctr.Logs(ctx)
	if err != nil {
		return ""
	}
	defer func() { _ = log.Close() }()
	text, err := io.ReadAll(io.LimitReader(log, 1<<20))
	if err != nil {
		return ""
	}
	return server.LastLines(string(text), 3)
}

// Close removes the container with its data, for whose sake it need not end in
// order.
func (b *box) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*boxTimeout)
	defer cancel()
	err := testcontainers.TerminateContainer(b.ctr, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
	if err != nil {
		err = errors.New(format.OneLine(err.Error()))
	}
	return errors.Join(err, b.dir.Remove())
}

var errForeign = errors.New("the container engine runs on another machine or in a virtual one: its processes are " +
	"none of this machine's")

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
		return nil, fmt.Errorf("the process %d of the container is not visible here: this program runs in a container itself",
			pid)
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
