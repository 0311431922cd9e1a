package programs_test

// Package testenv imports this one, so that only tests outside of the package can import it.
import _ "github.com/quotabench/quotabench/internal/kit/testenv"
