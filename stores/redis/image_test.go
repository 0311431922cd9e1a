package redis_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quotabench/quotabench/internal/host/server"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// engine runs no container: it remembers the image.
type engine struct{ image string }

var errPlanted = errors.New("planted")

func (e *engine) Find(context.Context) (server.Engine, error)             { return e, nil }
func (e *engine) Survey(context.Context, []server.Image) []server.Finding { return nil }
func (e *engine) HasImage(context.Context, string) bool                   { return false }
func (e *engine) Detail(string) string                                    { return "" }
func (e *engine) RemoveOrphans(context.Context)                           {}
func (e *engine) Run(_ context.Context, s server.ContainerSpec, _ func(server.Container) error) error {
	e.image = s.Image
	return errPlanted
}

// TestImage: a container has the image that its spec names.
func TestImage(t *testing.T) {
	e := new(engine)
	before := server.RegisterContainers(e)
	t.Cleanup(func() { server.RegisterContainers(before) })
	o := stores.Options{Dir: t.TempDir(), KeepLeftovers: true}
	if _, err := redis.Open(t.Context(), "container:durable,image=redis:8", o); !errors.Is(err, errPlanted) ||
		e.image != "redis:8" {
		t.Errorf("a container of %q: %v", e.image, err)
	}
}
