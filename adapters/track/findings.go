package track

import "github.com/quotabench/quotabench/results"

// finding is a defect of a library. What a record says, the steps of the schedule and
// the units, is not among it.
type finding struct {
	// name of the confirmation in package confirm.
	name string
	// module that is broken. Its version is that of go.mod.
	module string
	// broken is the defect in one line.
	broken string
	// command of quotabench that finds it, and the property that is broken in its record:
	// empty if run finds it.
	command  []string
	property results.Property
	// policy of the search that finds it, if a search before it breaks the property for
	// another reason.
	policy string
	// related is the nearest thread that a search found, empty for none.
	related string
	// reported is set if that thread is about this defect of this library.
	reported bool
}

const (
	redisRate = "github.com/go-redis/redis_rate/v10"
	throttled = "github.com/throttled/throttled/v2"
	httprate  = "github.com/go-chi/httprate"
	gin       = "github.com/JGLTechnologies/gin-rate-limit"
	goZero    = "github.com/zeromicro/go-zero"
	fiber     = "github.com/gofiber/fiber/v2"
	beego     = "github.com/beego/beego/v2"
	jaeger    = "github.com/uber/jaeger-client-go"
	oxy       = "github.com/vulcand/oxy/v2"
	// redisStore is of the author of sethvargo/go-limiter.
	redisStore = "github.com/sethvargo/go-redisstore"
	mennanov   = "github.com/mennanov/limiters"
)

var findings = []finding{
	{
		name: "throttled-ttl", module: throttled,
		broken:  "The TTL on Redis is rounded down to whole seconds: the key expires before the bucket is full.",
		command: []string{"explore", "lib-throttled-redis"}, property: "leak", policy: "1-request-refilling-2-per-3s",
	},
	{
		name: "go-zero-ttl", module: goZero,
		broken:  "If the burst is less than half the rate, the TTL is 0 and the script fails: each process decides alone.",
		command: []string{"explore", "lib-go-zero-token"}, property: "leak",
		related: "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453",
	},
	{
		name: "go-zero-seconds", module: goZero,
		broken:   "Time counts in whole seconds: a bucket emptied at the end of a second is refilled at once.",
		command:  []string{"explore", "lib-go-zero-token"},
		property: "leak", policy: "1-request-refilling-1-per-1s",
		related: "https://github.com/zeromicro/go-zero/pull/1451", reported: true,
	},
	{
		name: "fiber-redis-race", module: fiber,
		broken:  "The storage is read and written in two commands: instances overwrite each other.",
		command: []string{"explore", "lib-fiber-redis"}, property: "leak",
		related: "https://github.com/gofiber/fiber/issues/4358", reported: true,
	},
	{
		name: "redis-rate-at-most", module: redisRate,
		broken:   "AllowAtMost subtracts fractions and grants whole units: up to one unit is lost per call.",
		command:  []string{"explore", "lib-redis-rate-at-most"},
		property: "false-reject",
		related:  "https://github.com/go-redis/redis_rate/issues/68",
	},
	{
		name: "gin-redis-race", module: gin,
		broken:  "The count is read in one pipeline and written in another: concurrent callers are all admitted.",
		command: []string{"explore", "lib-gin-redis"}, property: "leak",
	},
	{
		name: "gin-window", module: gin,
		broken:  "Every admitted request restarts the window: callers below the limit are rejected.",
		command: []string{"explore", "lib-gin-memory"}, property: "false-reject",
	},
	{
		name: "gin-seconds", module: gin,
		broken:  "The rate is truncated to whole seconds: less than a second limits nothing.",
		command: []string{"explore", "lib-gin-memory"}, property: "leak", policy: "1-request-per-first-request-500ms",
	},
	{
		name: "gin-memory-race", module: gin,
		broken:  "The memory store changes a copy without a lock: a lost update.",
		command: []string{"run", "lib-gin-memory", "--policy", "window-calls", "--instances", "1", "--quick"},
	},
	{
		name: "httprate-late", module: httprate,
		broken: "A request computes its window before it takes the lock: a late one empties both counters.",
		command: []string{"run", "lib-httprate", "--policy", "200 calls per rolling 50ms", "--limit", "200", "--workload",
			"steady:subjects=1",
			"--workers", "64", "--instances", "1", "--loop", "closed", "--duration", "1s", "--rounds", "2"},
		related: "https://github.com/go-chi/httprate/issues/2",
	},
	{
		name: "beego-burst", module: beego,
		broken:  "The bucket is capped after a request, not before: one unit too many after a rest.",
		command: []string{"explore", "lib-beego"}, property: "leak",
	},
	{
		name: "jaeger-burst", module: jaeger,
		broken:  "A rest refills the balance after leftover units are spent: bursts of nearly twice the balance.",
		command: []string{"explore", "lib-jaeger"}, property: "leak",
	},
	{
		name: "oxy-fraction", module: oxy,
		broken:  "Fractions of a unit are lost at each request: down to half of the rate.",
		command: []string{"explore", "lib-oxy"}, property: "false-reject",
	},
	{
		name: "oxy-forgets", module: oxy,
		broken: "A bucket in use is replaced by a full one after ten periods.",
		command: []string{"run", "lib-oxy", "--policy", "100 calls refilling 1 per 1s", "--limit", "100", "--workload",
			"steady:subjects=1",
			"--workers", "4", "--instances", "1", "--loop", "open", "--rate", "200", "--duration", "12s", "--rounds", "1"},
		related: "https://github.com/vulcand/oxy/issues/132", reported: true,
	},
	{
		name: "sethvargo-interval", module: redisStore,
		broken:  "The TTL is in whole seconds: with an interval below one second every bucket is full.",
		command: []string{"explore", "lib-sethvargo-redis"}, property: "guarantee",
	},
	{
		name: "mennanov-ttl", module: mennanov,
		broken: "The README's TTL is the refill time of one token: keys expire before the bucket is full.",
		command: []string{"explore", "lib-mennanov-token-redis", "--policy", "2 requests refilling 1 per 1s", "--limit", "2",
			"--clients", "1",
			"--script", "take=2,take=2", "--faults", "clock", "--property", "leak", "--timeout", "5m"}, property: "leak",
	},
	{
		name: "mennanov-overflow", module: mennanov,
		broken: "Limit times window length overflows an int64: after a busy window all is admitted.",
		command: []string{"sim", "lib-mennanov-sliding-memory", "--policy", "5000 calls per rolling 720h", "--limit", "5000",
			"--workload", "steady:subjects=1",
			"--instances", "1", "--rate", "0.05", "--duration", "1440h"},
		related: "https://github.com/mennanov/limiters/pull/116",
	},
}

// limiter is a library and the name of its adapter.
type limiter struct{ module, strategy string }

// documented are the limiters of which searches find only what the library documents.
var documented = []limiter{
	{"github.com/juju/ratelimit", "lib-juju-ratelimit"},
	{"github.com/failsafe-go/failsafe-go", "lib-failsafe-bursty"},
	{"github.com/cockroachdb/tokenbucket", "lib-cockroach"},
	{"github.com/RussellLuo/slidingwindow", "lib-slidingwindow"},
	{mennanov, "lib-mennanov-leaky-redis"},
	{mennanov, "lib-mennanov-leaky-memory"},
	{mennanov, "lib-mennanov-fixed-redis"},
	{mennanov, "lib-mennanov-sliding-redis"},
	{"github.com/sethvargo/go-limiter", "lib-sethvargo-memory"},
}

// clean are the libraries of which a command with default flags finds nothing.
var clean = []limiter{
	{redisRate, "lib-redis-rate"},
	{throttled, "lib-throttled-memory"},
	{"github.com/ulule/limiter/v3", "lib-ulule-redis"},
	{"github.com/ulule/limiter/v3", "lib-ulule-memory"},
	{goZero, "lib-go-zero-period"},
	{"github.com/didip/tollbooth/v7", "lib-tollbooth"},
	{"golang.org/x/time", "lib-x-time-rate"},
	{"github.com/labstack/echo/v4", "lib-echo-memory"},
	{"github.com/beefsack/go-rate", "lib-beefsack"},
	{"github.com/kevinms/leakybucket-go", "lib-kevinms"},
	{"github.com/Clever/leakybucket", "lib-clever-memory"},
	{mennanov, "lib-mennanov-token-memory"},
	{mennanov, "lib-mennanov-token-checked"},
	{mennanov, "lib-mennanov-fixed-memory"},
}

// rebuilt are decisions of gateways that are written here from what they publish. A finding in them is one in
// that publication, not in the gateway.
var rebuilt = []rebuild{
	{
		name: "Kong, sync_rate -1", source: kong,
		command: []string{"explore", "gw-kong-redis", "--faults", "clock"},
	},
	{
		name: "Kong, sync_rate 0.1", source: kong,
		broken: "The request that reads the counter is not counted: one too many per instance and interval. Documented " +
			"as less accurate.",
		command:  []string{"explore", "gw-kong-sync", "--instances", "1", "--script", "take,take", "--limit", "2"},
		property: "leak",
		thread:   "https://github.com/Kong/kong/pull/11859",
	},
	{
		name: "redis-cell", source: "https://github.com/brandur/redis-cell/blob/master/src/cell/mod.rs",
		command: []string{"explore", "gw-redis-cell", "--clients", "1", "--script", "take,take,take", "--limit", "1",
			"--faults", "clock"},
	},
	{
		name: "Stripe", source: "https://stripe.com/blog/rate-limiters",
		broken:  "The TTL is 0 if the bucket fills in less than half a second: the script fails, and failures are admitted.",
		command: []string{"explore", "gw-stripe"}, property: "leak",
		thread: "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453",
	},
	{
		name:    "Spring Cloud Gateway",
		source:  "https://github.com/spring-cloud/spring-cloud-gateway/blob/main/spring-cloud-gateway-server/src/main/resources/META-INF/scripts/request_rate_limiter.lua",
		broken:  "A bucket that fills in less than half a second is not kept: it limits nothing.",
		command: []string{"explore", "gw-spring"}, property: "leak",
		thread: "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453",
	},
	{
		name: "Cloudflare", source: "https://blog.cloudflare.com/counting-things-a-lot-of-different-things/",
		broken:  "Counters are read first and raised afterwards, as documented.",
		command: []string{"explore", "gw-cloudflare"}, property: "leak",
		thread: "https://blog.cloudflare.com/counting-things-a-lot-of-different-things/",
	},
}

const kong = "https://github.com/Kong/kong/blob/master/kong/plugins/rate-limiting/policies/init.lua"

// rebuild is the decision of one gateway.
type rebuild struct {
	name string
	// source has the code or the description that was rebuilt.
	source string
	// broken is the defect in one line; empty if there is none.
	broken string
	// command searches it.
	command []string
	// property that is broken; empty if nothing is to be found.
	property results.Property
	// thread is about it.
	thread string
}
