// Package postgres opens PostgreSQL servers: by URL, as a child process, in a
// container, or from a pool that the caller has. Importing it registers the driver
// "postgres".
package postgres
