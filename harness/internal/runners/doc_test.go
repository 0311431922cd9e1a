// Package runners_test tests what measured runs, simulations and searches have in common. It is a folder of its own
// because the tests of package harness would have all runners compiled again.
package runners_test
