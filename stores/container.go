package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

// The images that are used where [Options] name none.
const (
	DefaultRedisImage    = "redis:7.4.11-alpine"
	DefaultPostgresImage = "postgres:17.11-alpine"
)

// pullTimeout bounds how long a registry may take to deliver an image.
const pullTimeout = 10 * time.Minute

// box is a server in a container of ours.
type box struct {
	ctr *testcontainers.DockerContainer // nil where it could not be made
	dir *privateDir
	// host and port are where it is reached.
	host string
	port int
}

// boxSpec says what runs in a container.
type boxSpec struct {
	image string
	// port that the image's server listens on where it is published.
	port int
	// command for a server that listens on an address and a port.
	command func(listen string, port int) []string
	env     map[string]string
	files   map[string]string // by path; readable by all, in the container alone
}

// runBox runs a container, on a free port. start is called with it once it runs,
// and says whether the server in it is ready; if not, the container is removed.
func (e *engine) runBox(ctx context.Context, o Options, spec boxSpec, start func(*box) error) error {
	e.removeOrphans(ctx)
	if err := e.provide(ctx, spec.image, !o.NoPull); err != nil {
		return err
	}
	once := func(port int) error {
		b, err := e.startBox(ctx, port, o, spec)
		if err != nil {
			return err
		}
		if err := start(b); err != nil {
			return errors.Join(err, b.close())
		}
		return nil
	}
	var err error
	if e.shared {
		err = startOnFreePort(once)
	} else {
		err = once(spec.port) // the engine finds one for us
	}
	if err != nil {
		return fmt.Errorf("run a container of %s: %w", spec.image, err)
	}
	return nil
}

// startBox starts a container whose server listens on the port. It is ours to
// close where no error is returned.
func (e *engine) startBox(ctx context.Context, port int, o Options, spec boxSpec) (*box, error) {
	dir, err := newPrivateDir(o.dir())
	if err != nil {
		return nil, err
	}
	labels, err := ownerLabels()
	if err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	// First of all, so that there is no moment to be killed in without a trace.
	if err := os.WriteFile(filepath.Join(dir.path, containerFile), nil, 0o600); err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	b := &box{dir: dir, host: "127.0.0.1", port: port}
	listen, inner := b.host, network.MustParsePort(strconv.Itoa(port)+"/tcp")
	if !e.shared {
		listen = "0.0.0.0" // of the container
	}
	opts := []testcontainers.ContainerCustomizer{
		testcontainers.WithLabels(labels),
		testcontainers.WithCmd(spec.command(listen, port)...),
		testcontainers.WithEnv(spec.env),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			// PostgreSQL's processes share memory; the engine's 64 MiB are few.
			h.ShmSize = 256 << 20
			if e.shared {
				h.NetworkMode = network.NetworkHost
			} else if e.loopback() {
				h.PortBindings = network.PortMap{inner: {{HostIP: netip.MustParseAddr(b.host), HostPort: "0"}}}
			}
		}),
	}
	if !e.shared {
		opts = append(opts, testcontainers.WithExposedPorts(inner.String()))
	}
	for path, text := range maps.All(spec.files) {
		opts = append(opts, testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: strings.NewReader(text), ContainerFilePath: path, FileMode: 0o444}))
	}
	// An engine goes on to make a container that nobody waits for any more.
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	b.ctr, err = testcontainers.Run(making, spec.image, opts...)
	switch {
	case err != nil:
		err = errors.New(strings.TrimPrefix(oneLine(err.Error()), "generic container: "))
	case ctx.Err() != nil:
		err = ctx.Err()
	case !e.shared:
		err = b.findPort(ctx, e, inner)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
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

// detail describes the container on one line.
func (e *engine) detail(image string) string {
	if e.shared {
		return "container of " + image + " on this machine's network"
	}
	return "container of " + image + " behind a published port, which costs about half the throughput of a process: compare with the like only"
}

// boxTimeout bounds a question to the engine about a container.
const boxTimeout = 10 * time.Second

func (b *box) pid() int { return 0 }

func (b *box) ended() bool {
	ctx, cancel := context.WithTimeout(context.Background(), boxTimeout)
	defer cancel()
	s, err := b.ctr.State(ctx)
	return err == nil && !s.Running
}

func (b *box) lastWords() string {
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
	return lastLines(string(text), 3)
}

// close removes the container with its data, for whose sake it need not end in
// order.
func (b *box) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*boxTimeout)
	defer cancel()
	err := testcontainers.TerminateContainer(b.ctr, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
	if err != nil {
		err = errors.New(oneLine(err.Error()))
	}
	return errors.Join(err, b.dir.remove())
}
