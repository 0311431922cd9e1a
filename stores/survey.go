package stores

import (
	"context"
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
