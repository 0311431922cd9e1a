package keep

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// Missing is the error of a spec whose program is not there: "auto" requires none.
func Missing(spec string, err error) error {
	if spec == "auto" {
		return &stores.AbsentError{Reason: stores.Info{Kind: stores.KindNone, Detail: err.Error()}}
	}
	return err
}

// LoginRefused is what [Self.Unreached] says of servers that turn the user away.
const LoginRefused = "refuses the login"

// Unreached says in one line why servers of the user's own cannot be used, with a way out
// and without the password, which may also stand in env. why is what keeps runs from
// servers that are reached; "" if it is something else.
func (s *Self) Unreached(ctx context.Context, err error, password, env string, why func(err error, text string) string) error {
	text := server.Redact(format.OneLine(err.Error()), password)
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("connect to %s at %s: %w", s.Kind, s.About.Addr, context.Canceled)
	}
	switch what := why(err, text); what {
	case "":
		return fmt.Errorf("no %s reached at %s (%s): start one, or use --%s process", s.Kind, s.About.Addr, text, s.Kind)
	case LoginRefused:
		return fmt.Errorf("%s at %s %s (%s): give user and password in the URL, or the password in %s", s.Kind, s.About.Addr, what, text, env)
	default:
		return fmt.Errorf("%s at %s %s (%s)", s.Kind, s.About.Addr, what, text)
	}
}
