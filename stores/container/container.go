// Package container lets stores run in containers, on the engine that DOCKER_HOST
// names or that listens where engines do. It is imported for its effect: the
// drivers of stores then take "container", and "auto" may choose it.
package container

import (
	"context"
	"strings"

	"github.com/quotabench/quotabench/internal/cancel"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/stores/server"
)

func init() { server.RegisterContainers(engines{}) }

// engines are those of this machine, of which one is used.
type engines struct{}

// Find returns the engine.
func (engines) Find(ctx context.Context) (server.Engine, error) {
	e, err := findEngine(ctx)
	if err != nil {
		return nil, err // and no Engine that is not nil
	}
	return e, nil
}

// Survey looks for an engine, and for images on it.
func (engines) Survey(ctx context.Context, images []server.Image) []server.Finding {
	uses := format.List(images, ", ", func(i server.Image) string { return "--" + i.Name + " container" })
	f := server.Finding{Name: "container engine", Advice: uses}
	// What looks for the engine does not always heed ctx. It then goes on until
	// the process ends, which comes soon after a survey.
	e, err := cancel.Call(ctx, func() (*engine, error) { return findEngine(ctx) })
	switch {
	case err == nil:
		f.Found, f.Detail = true, e.client.DaemonHost()
		found := []server.Finding{f}
		for _, i := range images {
			found = append(found, e.surveyImage(ctx, i))
		}
		return found
	case ctx.Err() != nil:
		f.Detail, f.Advice = "it does not answer in time", "see what is wrong with it, e.g. by docker info"
	default:
		// The reason is followed by advice for running one.
		f.Detail, _, _ = strings.Cut(err.Error(), "): ")
		if f.Detail != err.Error() {
			f.Detail += ")"
		}
		f.Advice = "start Docker or Podman; name its socket in DOCKER_HOST if it is not the usual one"
	}
	return []server.Finding{f}
}

func (e *engine) surveyImage(ctx context.Context, i server.Image) server.Finding {
	f := server.Finding{Name: i.Name + " image", Found: e.HasImage(ctx, i.Ref), Detail: i.Ref, Advice: "--" + i.Name + " container"}
	if !f.Found {
		f.Detail += " is not local"
		f.Advice += " fetches it, or name another image with --" + i.Name + "-image"
	}
	return f
}
