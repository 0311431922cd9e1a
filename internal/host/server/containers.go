package server

import (
	"context"
	"errors"
)

// Containers looks for container engines. Package stores/container provides it to
// programs that import it, so that others are built without its libraries.
type Containers interface {
	// Find returns the engine that DOCKER_HOST names or that listens where engines
	// do. If there is none it says so at once.
	Find(ctx context.Context) (Engine, error)
	// Survey looks for an engine and for images on it. It starts nothing and does
	// not go on after ctx is done.
	Survey(ctx context.Context, images []Image) []Finding
}

// Engine runs containers.
type Engine interface {
	// HasImage reports whether an image is there already, so that no registry has
	// to be asked for it.
	HasImage(ctx context.Context, image string) bool
	// Detail describes a container of the image on one line.
	Detail(image string) string
	// Run runs a container, on a free port. ready is called with it once it runs,
	// and says whether the server in it is ready; if not, the container is removed.
	Run(ctx context.Context, spec ContainerSpec, ready func(Container) error) error
	// RemoveOrphans removes the containers whose owners on this machine died.
	RemoveOrphans(ctx context.Context)
}

// ContainerSpec says what runs in a container.
type ContainerSpec struct {
	Image string
	// NoPull refuses an image that is not on the machine yet.
	NoPull bool
	// Dir is the folder for the container's private directory; see [NewDir].
	Dir string
	// Port that the image's server listens on if it is published.
	Port int
	// Command for a server that listens on an address and a port.
	Command func(listen string, port int) []string
	Env     map[string]string
	Files   map[string]string // by path; readable by all, in the container alone
}

// Container is a server in a container, and where it is reached.
type Container interface {
	Server
	Host() string
	Port() int
}

// Image is a container image that a store uses if no other is named.
type Image struct {
	Name string // of the store, e.g. "redis"
	Ref  string // e.g. "redis:7.4.11-alpine"
}

// Finding is one thing that this machine has or lacks.
type Finding struct {
	// Name of the thing, e.g. "redis-server".
	Name string
	// Found is set if it can be used.
	Found bool
	// Detail is one line: what was found and where, or why it cannot be used.
	Detail string
	// Advice is one line, how to get or to use it.
	Advice string
}

var containers Containers

// PublishPorts makes every container publish its port, also if it could use this
// machine's network itself. It is for tests.
var PublishPorts bool

// RegisterContainers makes containers available, and returns what did so before. It is called by init functions, and by
// tests.
func RegisterContainers(c Containers) (before Containers) {
	before = containers
	containers = c
	return before
}

// ContainersBuiltIn reports whether this program can run containers at all.
func ContainersBuiltIn() bool { return containers != nil }

// FindEngine returns the container engine of this machine.
func FindEngine(ctx context.Context) (Engine, error) {
	if containers == nil {
		return nil, errors.New("this program was built without containers (import " +
			"github.com/quotabench/quotabench/stores/container): use process, embedded or a URL")
	}
	return containers.Find(ctx)
}

// SurveyContainers looks for an engine and for images on it. It finds nothing in
// programs that cannot run containers.
func SurveyContainers(ctx context.Context, images []Image) []Finding {
	if containers == nil {
		return nil
	}
	return containers.Survey(ctx, images)
}
