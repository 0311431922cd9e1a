// Package all registers every kind of store of this module, and containers.
package all

import (
	_ "github.com/quotabench/quotabench/internal/stores/haproxy"
	_ "github.com/quotabench/quotabench/internal/stores/nginx"
	_ "github.com/quotabench/quotabench/internal/stores/service"
	_ "github.com/quotabench/quotabench/stores/container" // lets the others run containers
	_ "github.com/quotabench/quotabench/stores/postgres"
	_ "github.com/quotabench/quotabench/stores/redis"
)
