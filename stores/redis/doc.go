// Package redis opens Redis servers: by URL, as a child process, in a container,
// embedded in this process, or from a client that the caller has. Importing it
// registers the driver "redis".
package redis
