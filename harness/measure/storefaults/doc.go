// Package storefaults tries what faults of stores do to a measurement, on real servers
// of every kind. It has tests alone, and stands apart from package measure so that a
// module that uses that one does not name the clients of all stores.
package storefaults
