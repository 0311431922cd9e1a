package cancel

import (
	"context"
	"errors"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestCall(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	wrong := errors.New("wrong")
	if v, err := Call(ctx, func() (int, error) { return 7, wrong }); v != 7 || !errors.Is(err, wrong) {
		t.Errorf("%d, %v", v, err)
	}
	begun := make(chan bool)
	never := make(chan bool)
	defer close(never)
	go func() {
		<-begun
		stop()
	}()
	v, err := Call(ctx, func() (int, error) {
		close(begun)
		<-never
		return 7, nil
	})
	if v != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v: work that does not end was waited for", v, err)
	}
	if _, err := Call(ctx, func() (int, error) { t.Error("called"); return 0, nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
