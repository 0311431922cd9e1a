// Package httpstore is what the drivers of services that are asked by HTTP share: a
// metered client, and servers that are started here with a limit in their
// configuration.
package httpstore
