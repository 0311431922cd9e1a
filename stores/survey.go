package stores

import (
	"context"
	"os/exec"
	"runtime"
	"time"

	"github.com/quotabench/quotabench/internal/stores/server"
)

// Finding says whether this machine has one of the things that stores come from.
type Finding struct {
	// Name of the thing, e.g. "redis-server".
	Name string
	// Found is set where it can be used.
	Found bool
	// Detail is one line: what was found and where, or why it cannot be used.
	Detail string
	// Advice is one line, how to get or to use it.
	Advice string
}

// surveyTimeout bounds how long a container engine may take to answer: a broken
// one must not keep the answer about everything else.
const surveyTimeout = 500 * time.Millisecond

// Survey looks for all that the registered drivers can use. It starts nothing and
// takes less than a second.
func Survey(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	var found []Finding
	var images []server.Image
	for _, d := range Drivers() {
		if d.Survey != nil {
			found = append(found, d.Survey(ctx)...)
		}
		if d.Image != "" {
			images = append(images, server.Image{Name: d.Name, Ref: d.Image})
		}
	}
	for _, f := range server.SurveyContainers(ctx, images) {
		found = append(found, Finding(f))
	}
	return found
}

// Dir is a private directory of this process. If it dies without removing that, it is among
// the [Leftovers].
type Dir = server.Dir

// NewDir makes a private directory in [os.TempDir].
func NewDir() (*Dir, error) { return server.NewDir("") }

// RunWithUs runs a command to its end, and has it end when this process dies.
func RunWithUs(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	server.EndWithUs(cmd)
	return cmd.Run()
}

// Leftovers lists the private directories of servers in dir whose processes died
// without removing them; an empty dir is [os.TempDir].
func Leftovers(dir string) []string { return server.Leftovers(dir) }

// RemoveLeftovers removes those, and ends what is left of their servers, as every
// store does that is opened.
func RemoveLeftovers(ctx context.Context, dir string) { server.RemoveLeftovers(ctx, dir) }
