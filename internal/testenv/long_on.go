//go:build long

package testenv

const long = true
