package zookeeper

import "github.com/quotabench/quotabench/stores"

// Password of a server started here.
func (z *Store) Password() string { return z.password }

// Arguments of a server that is a child of ours.
func (z *Store) Arguments() []string { return z.own.Args() }

// NewParser is the parser of a connection.
func NewParser() stores.Parser { return &parser{} }
