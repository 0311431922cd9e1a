package zookeeper

import (
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// Password of a server started here.
func (z *Store) Password() string { return z.password }

// Arguments of a server that is a child of ours.
func (z *Store) Arguments() []string { return z.self.Own.(server.Group)[0].(*server.Child).Args() }

// NewParser is the parser of a connection.
func NewParser() stores.Parser { return newParser() }

// Board is where the leases on a server are.
func (z *Store) Board() leases.Board { return board{z} }
