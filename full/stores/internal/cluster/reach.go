package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// Missing is the error of a spec whose program is not there: "auto" requires none.
func Missing(spec string, err error) error {
	if spec == "auto" {
		return &stores.AbsentError{Reason: stores.Info{Kind: stores.KindNone, Detail: err.Error()}}
	}
	return err
}

// LoginRefused is what [Reach.Why] says of servers that turn the user away.
const LoginRefused = "refuses the login"

// Reach is about servers of a user's own, with the password, which may also stand in Env.
type Reach struct {
	Self          *leases.Self
	Password, Env string
	// Why is what keeps runs from servers that are reached; "" if it is something else.
	// text is the error without the password.
	Why func(err error, text string) string
}

// Explain says in one line why they cannot be used, with a way out and without the password.
func (r Reach) Explain(ctx context.Context, err error) error {
	kind := r.Self.Kind
	addr := r.Self.About.Addr
	text := server.Redact(format.OneLine(err.Error()), r.Password)
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("connect to %s at %s: %w", kind, addr, context.Canceled)
	}
	switch what := r.Why(err, text); what {
	case "":
		return fmt.Errorf("no %s reached at %s (%s): start one, or use --store %s=process", kind, addr, text, kind)
	case LoginRefused:
		return fmt.Errorf("%s at %s %s (%s): give user and password in the URL, or the password in %s", kind, addr, what,
			text, r.Env)
	default:
		return fmt.Errorf("%s at %s %s (%s)", kind, addr, what, text)
	}
}

// Within is the scope among entered whose name, or a name that it begins followed by an
// underscore, is given; and otherwise the name itself.
func Within(name string, entered []stores.Scope) stores.Scope {
	for _, scope := range entered {
		if name == string(scope) || strings.HasPrefix(name, string(scope)+"_") {
			return scope
		}
	}
	return stores.Scope(name)
}
