// Package container lets stores run in containers, on the engine that DOCKER_HOST
// names or that listens where engines do. It is imported for its effect: the
// drivers of stores then take "container", and "auto" may choose it.
package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/cancel"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
)

// name of the engine among the programs.
const name = "container"

func init() { server.RegisterContainers(engines{}) }

// engines are those of this machine, of which one is used.
type engines struct{}

// Find returns the engine.
func (engines) Find(ctx context.Context) (server.Engine, error) {
	engine, err := findEngine(ctx)
	if err != nil {
		return nil, err // and no Engine that is not nil
	}
	return engine, nil
}

// Survey looks for an engine, and for images on it.
func (engines) Survey(ctx context.Context, images []server.Image) []server.Finding {
	program := programs.Named(name)
	finding := server.Finding{Name: "container engine", Advice: program.Option}
	// What looks for the engine does not always heed ctx. It then goes on until
	// the process ends, which comes soon after a survey.
	e, err := cancel.Call(ctx, func() (*engine, error) { return findEngine(ctx) })
	switch {
	case err == nil:
		finding.Found = true
		finding.Detail = e.client.DaemonHost()
		found := []server.Finding{finding}
		for _, i := range images {
			found = append(found, e.surveyImage(ctx, i))
		}
		return found
	case ctx.Err() != nil:
		finding.Detail = "it does not answer in time"
		finding.Advice = "see what is wrong with it, e.g. by docker info"
	default:
		// The reason is followed by advice for running one.
		finding.Detail, _, _ = strings.Cut(err.Error(), "): ")
		if finding.Detail != err.Error() {
			finding.Detail += ")"
		}
		finding.Advice = start(program) + "; name its socket in DOCKER_HOST if it is not the usual one"
	}
	return []server.Finding{finding}
}

func (e *engine) surveyImage(ctx context.Context, i server.Image) server.Finding {
	finding := server.Finding{Name: i.Name + " image", Found: e.HasImage(ctx, i.Ref), Detail: i.Ref, Advice: "--" +
		i.Name + " container"}
	if !finding.Found {
		finding.Detail += " is not local"
		finding.Advice += " fetches it, or name another image with --" + i.Name + "-image"
	}
	return finding
}

// pingTimeout bounds how long a container engine may take to say that it is
// there, and engineTimeout how long all that is asked of it at first.
const (
	pingTimeout   = time.Second
	engineTimeout = 10 * time.Second
)

// engine runs containers.
type engine struct {
	docker *testcontainers.DockerProvider
	client client.APIClient // of docker
	// host is where the published ports of its containers are reached.
	host string
	// shared is set if containers can use this machine's network itself.
	shared bool
	// local is set if containers run on this machine's own kernel: then
	// their processes are processes here.
	local bool
}

// quietTestcontainers makes the library do what we ask and no more: it would
// print who it talks to, and start a container that removes others when we die,
// which needs one more image and rights over the engine. Orphans are removed by
// the next Open instead. Who wants the reaper can say so in the environment.
var quietTestcontainers = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	const reaper = "TESTCONTAINERS_RYUK_DISABLED"
	if _, set := os.LookupEnv(reaper); !set {
		_ = os.Setenv(reaper, "true") // the name is a valid one
	}
})

// findEngine returns the engine that DOCKER_HOST names or that listens where
// engines do. If there is none it says so at once. The library remembers the
// answer for the life of this process.
func findEngine(ctx context.Context) (*engine, error) {
	quietTestcontainers()
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	if program := programs.Named(name); program.Hidden() {
		return nil, program.Missing()
	}
	if err := ping(ctx); err != nil {
		return nil, noEngine(err)
	}
	provider, err := testcontainers.ProviderDefault.GetProvider()
	if err != nil {
		return nil, noEngine(err)
	}
	docker, ok := provider.(*testcontainers.DockerProvider)
	if !ok {
		return nil, noEngine(fmt.Errorf("%T is not a provider of Docker's interface", provider))
	}
	e := &engine{docker: docker, client: docker.Client()}
	e.host, err = docker.DaemonHost(ctx)
	if err != nil {
		return nil, noEngine(err)
	}
	info, err := e.client.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, noEngine(err)
	}
	// In a virtual machine, or in a network namespace of its user's, "the host"
	// is not this machine.
	socket := runtime.GOOS == "linux" && strings.HasPrefix(e.client.DaemonHost(), "unix://")
	e.local = socket && info.Info.OperatingSystem != "Docker Desktop"
	foreign := slices.ContainsFunc(info.Info.SecurityOptions, func(text string) bool {
		return strings.HasPrefix(text, "name=rootless")
	})
	e.shared = e.local && e.loopback() && !foreign && !server.PublishPorts
	return e, nil
}

func noEngine(err error) error {
	// The last place that was looked in is not the one to be told about.
	why := strings.ReplaceAll(format.OneLine(err.Error()), "rootless Docker not found", "no socket in the usual places")
	why = strings.TrimSuffix(why, ", failed to create Docker provider")
	return fmt.Errorf("no container engine answers (%s): %s and name its socket in DOCKER_HOST, "+
		"or use process, embedded or a URL", why, start(programs.Named(name)))
}

// start says how to get an engine.
func start(program programs.Program) string {
	if _, err := program.Find(); err != nil {
		return program.Install() + ", or start Docker or Podman"
	}
	return "start Docker or Podman"
}

// ping asks the engine whether it is there. The library does so, too, but would
// wait for a broken one without end.
func ping(ctx context.Context) error {
	const standard = "/var/run/docker.sock"
	if os.Getenv("DOCKER_HOST") == "" && !server.Exists(standard) {
		return nil // the library knows more places
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	c, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	_, err = c.Ping(ctx, client.PingOptions{})
	return errors.Join(err, c.Close())
}

// loopback reports whether published ports are reached on this machine.
func (e *engine) loopback() bool {
	ip := net.ParseIP(e.host)
	return e.host == "localhost" || ip != nil && ip.IsLoopback()
}

// HasImage reports whether an image is there already, so that no registry has
// to be asked for it.
func (e *engine) HasImage(ctx context.Context, image string) bool {
	_, err := e.client.ImageInspect(ctx, image)
	return err == nil
}

// provide sees to it that an image is there.
func (e *engine) provide(ctx context.Context, image string, pull bool) error {
	if e.HasImage(ctx, image) {
		return nil
	}
	const waysOut = "name another one, or use process, embedded or a URL"
	if !pull {
		return fmt.Errorf("there is no container image %s on this machine: fetch it (docker pull), %s", image, waysOut)
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	if err := e.docker.PullImage(ctx, image); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // what the library says then is long
		}
		return fmt.Errorf("fetch the container image %s (%s): %s", image, format.OneLine(err.Error()), waysOut)
	}
	return nil
}

// Labels by which containers are known as ours.
const (
	labelOwner   = "quotabench.owner"   // process that uses it: number, and identity
	labelMachine = "quotabench.machine" // where that number means something
)

// ownerLabels are those of a container of this process.
func ownerLabels() (map[string]string, error) {
	owner, err := server.ProcessMark(os.Getpid())
	if err != nil {
		return nil, err
	}
	text, err := machine()
	if err != nil {
		return nil, err
	}
	return map[string]string{labelOwner: owner, labelMachine: text}, nil
}

// RemoveOrphans removes the containers whose owners on this machine died. As
// with other leftovers, it does what it can.
func (e *engine) RemoveOrphans(ctx context.Context) {
	text, err := machine()
	if err != nil {
		return
	}
	found, err := e.client.ContainerList(ctx, client.ContainerListOptions{
		All:     true, // those that have ended, too
		Filters: client.Filters{}.Add("label", labelMachine+"="+text),
	})
	if err != nil {
		return
	}
	for _, summary := range found.Items {
		if !ownerLives(summary.Labels[labelOwner]) {
			_, _ = e.client.ContainerRemove(ctx, summary.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
}

// ownerLives reports whether the process that a label names is still the one it
// was. What cannot be understood is left alone.
func ownerLives(label string) bool {
	pid, id, ok := server.ParseMark(label)
	return !ok || server.IsStill(pid, id)
}

// machine names where process numbers mean the same as here, and whose processes
// can be seen: a container of another machine or user is none of our business.
func machine() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	ns, err := server.ProcessNamespace()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s uid %d", host, ns, os.Geteuid()), nil
}
