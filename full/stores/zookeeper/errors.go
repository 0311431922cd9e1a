package zookeeper

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/quota"
)

// refusals are errors of a server that is not there, or will have nothing to do with
// the client.
var refusals = []error{
	zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrClosing, zk.ErrNoAuth,
	zk.ErrAuthFailed,
}

// errorKind is [stores.Driver.ErrorKind].
func errorKind(err error) quota.ErrorKind {
	switch {
	case errors.Is(err, zk.ErrBadVersion):
		return quota.ErrorContention
	case slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) }):
		return quota.ErrorStore
	}
	return ""
}
