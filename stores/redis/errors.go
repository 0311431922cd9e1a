package redis

import (
	"errors"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
)

// refusals begin the errors by which a Redis says that it will not do now what any
// client asks of it, whatever the strategy.
var refusals = []string{
	"OOM", "LOADING", "READONLY", "NOPERM", "NOAUTH", "WRONGPASS", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "BUSY", "TRYAGAIN",
}

// errorKind is [stores.Driver.ErrorKind].
func errorKind(err error) quota.ErrorKind {
	switch {
	case errors.Is(err, goredis.TxFailedErr): // WATCH saw another's change
		return quota.ErrorContention
	case errors.Is(err, goredis.ErrPoolTimeout):
		return quota.ErrorTimeout
	}
	var said goredis.Error
	if !errors.As(err, &said) {
		return ""
	}
	word, rest, _ := strings.Cut(said.Error(), " ")
	refused := strings.HasPrefix(rest, "max number of clients") || strings.HasPrefix(rest, "unknown command")
	if slices.Contains(refusals, word) || word == "ERR" && refused {
		return quota.ErrorStore
	}
	return ""
}
