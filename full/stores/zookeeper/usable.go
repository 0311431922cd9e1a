package zookeeper

import (
	"context"
	crand "crypto/rand"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
	"github.com/quotabench/quotabench/internal/kit/cancel"
)

// usable tries what every run does on servers that were running already: make a node,
// write to it, read it, list its neighbours, and remove it. It goes with the session if
// it cannot be removed.
func (z *Store) usable(ctx context.Context) error {
	ctx, end := context.WithTimeout(ctx, dialTimeout)
	defer end()
	path := "/quotabench-check-" + strings.ToLower(crand.Text())
	_, err := cancel.Call(ctx, func() (struct{}, error) {
		_, _, err := z.admin.Children("/")
		if err == nil {
			_, err = z.admin.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		}
		if err == nil {
			_, err = z.admin.Set(path, []byte("1"), -1)
		}
		if err == nil {
			_, _, err = z.admin.Get(path)
		}
		if err == nil {
			err = z.admin.Delete(path, -1)
		}
		return struct{}{}, err
	})
	return err
}

// unusable says in one line what keeps runs from servers that are reached, with a way
// out; "" if it is something else.
func (z *Store) unusable(err error, _ string) string {
	switch {
	case errors.Is(err, errNotServing):
		return "serves no requests: it is starting, or too few of its servers are there"
	case errors.Is(err, zk.ErrNoAuth) && z.user == "":
		return "lets users without a login make no nodes: give user and password in the URL, or the rights cdrw on / to " +
			"all, by setAcl"
	case errors.Is(err, zk.ErrNoAuth):
		return "lets the user \"" + z.user + "\" make no nodes: give it the rights cdrw on /, by setAcl"
	case errors.Is(err, zk.ErrAuthFailed):
		return cluster.LoginRefused
	}
	return ""
}
