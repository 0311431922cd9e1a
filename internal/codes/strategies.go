package codes

// Metric is what the served metrics take from a measure of a strategy.
type Metric string

// What they take.
const (
	// MetricFilterHits are answers of a filter that a subject may be known.
	MetricFilterHits Metric = "filter-hits"
	// MetricFalsePositives are those of them that were wrong.
	MetricFalsePositives Metric = "false-positives"
	// MetricQueueLag is the longest time that a charge waited in a queue, in "us" or "ns".
	MetricQueueLag Metric = "queue-lag"
)

// EtcdCounter is the name of the strategy whose code is in package etcd.
const EtcdCounter = "etcd-counter"

// ZooKeeperCounter is the name of the strategy whose code is in package zookeeper.
const ZooKeeperCounter = "zookeeper-counter"

// QueueOfCharges is the name of the strategy whose code is in package jetstream.
const QueueOfCharges = "queue"

// The names of the strategies of the module full that ask Envoy's rate limit service.
const (
	EnvoyRatelimit = "envoy-ratelimit"
	GRPCBare       = "grpc-bare"
)
