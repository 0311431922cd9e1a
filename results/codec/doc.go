// Package codec reads and writes the versioned JSON form of results, and refuses
// what is not exactly of that form: a leak that is missing must not read as no leak.
package codec
