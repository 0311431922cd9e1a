// Package server starts, watches and removes the servers that stores run on: as
// child processes with private directories, or in containers.
//
// A private directory holds a lock for as long as its owner lives, so that the
// next [RemoveLeftovers] can tell what a killed process left behind.
package server
