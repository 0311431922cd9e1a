// Package httpstore is shared by the drivers of services that are asked by HTTP: a
// metered client, and servers that are started here with a limit in their
// configuration.
package httpstore
