// Package service has limiters that are services: those of a user's own, asked over
// HTTP, and gateways that are started for a run, nginx and HAProxy. They are measured
// from outside. What decides is a process of its own, whose steps no simulation and no
// search can order.
package service

import (
	"fmt"

	"github.com/quotabench/quotabench/quota"
)

// TierService is the tier that decides.
const TierService quota.Tier = "service"

// servesSingle refuses policies with costs other than 1: a request over HTTP is one.
func servesSingle(p *quota.Policy) error {
	for _, c := range p.Costs {
		if c != 1 {
			return fmt.Errorf("policy %s has requests of %d %s; a service counts a request as 1", p.Name, c, p.Unit)
		}
	}
	return nil
}

// noFalseReject is the clause of what rejects nothing that fits.
var noFalseReject = quota.Clause{
	Property: quota.PropertyFalseReject, Formula: "0", Bound: func(quota.Params) int64 { return 0 },
}
