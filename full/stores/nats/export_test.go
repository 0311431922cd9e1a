package nats

import (
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// Password of a server started here.
func (n *Store) Password() string { return n.password }

// Arguments of a server that is a child of ours.
func (n *Store) Arguments() []string { return n.self.Own.(*server.Child).Args() }

// NewParser is the parser of a connection.
func NewParser() stores.Parser { return &parser{} }

// Board is where the leases on a server are.
func (n *Store) Board() leases.Board { return board{n} }
