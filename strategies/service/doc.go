// Package service has limiters that are services: those of a user's own, asked over
// HTTP, and gateways that are started for a run, nginx and HAProxy. They are measured
// from outside. What decides is a process of its own, whose steps no simulation can order, and
// a search only as far as they are commands to Redis.
package service

import (
	"embed"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md
var files embed.FS

// TierService is the tier that decides.
const TierService quota.Tier = "service"

// servesSingle refuses policies with costs other than 1: a request over HTTP is one.
func servesSingle(policy *quota.Policy) error {
	return family.CostsAtMost(1, policy, "; a service counts a request as 1")
}
