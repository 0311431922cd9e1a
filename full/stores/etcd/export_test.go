package etcd

import (
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
)

// Password of a server started here.
func (e *Store) Password() string { return e.password }

// Arguments of a server that is a child of ours.
func (e *Store) Arguments() []string { return e.self.Own.(server.Group)[0].(*server.Child).Args() }

// Board is where the leases on a server are.
func (e *Store) Board() leases.Board { return &board{Store: e} }
