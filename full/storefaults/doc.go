// Package storefaults tries what faults of stores do to a measurement, on real servers
// of every kind. It has tests alone, and is in this module because it needs the clients
// of all stores.
package storefaults
