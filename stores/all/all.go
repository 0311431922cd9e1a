// Package all registers every kind of store of this module, and containers.
package all

import (
	_ "github.com/quotabench/quotabench/stores/container" // lets the others run containers
	_ "github.com/quotabench/quotabench/stores/haproxy"
	_ "github.com/quotabench/quotabench/stores/nginx"
	_ "github.com/quotabench/quotabench/stores/postgres"
	_ "github.com/quotabench/quotabench/stores/redis"
	_ "github.com/quotabench/quotabench/stores/service"
)
