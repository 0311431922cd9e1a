// Package html writes records as one self-contained page: nothing in it is loaded
// from elsewhere. What stands in a record is text to it, wherever it came from.
package html
