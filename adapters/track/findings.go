package track

import "github.com/quotabench/quotabench/results"

// finding is a defect of a library. What a record says, the steps of the schedule and
// the units, is not among it.
type finding struct {
	// name of the confirmation in package confirm.
	name string
	// module that is broken. Its version is that of go.mod.
	module string
	// broken is the defect, and when says under what configuration it shows: sentences.
	broken, when string
	// command of quotabench that finds it, and the property that is broken in its record:
	// empty if run finds it.
	command  []string
	property results.Property
	// policy of the search that finds it, if a search before it breaks the property for
	// another reason.
	policy string
	// related is the nearest thread that a search found, empty for none, and known says
	// what that thread says.
	related, known string
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
		broken:  "On Redis, the TTL of the state is rounded down to whole seconds. The key expires before the bucket is full again, and the caller gets a full bucket. The store documents the rounding; the limiter does not mention the lost limit.",
		when:    "A refill time per unit that is not a whole number of seconds, e.g. 31 per minute without a burst.",
		command: []string{"explore", "lib-throttled-redis"}, property: "leak", policy: "1-request-refilling-2-per-3s",
	},
	{
		name: "go-zero-ttl", module: goZero,
		broken:  "The TTL of TokenLimiter's keys is twice the refill time of the bucket, rounded down to whole seconds. If that is 0, Redis refuses it: the script always fails, and each process decides by its own bucket and only logs it.",
		when:    "A burst of less than half the rate, e.g. 40 at 100 per second.",
		command: []string{"explore", "lib-go-zero-token"}, property: "leak",
		related: "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453", known: "is about the same script in Spring Cloud Gateway, which then has no limit; none was found in go-zero",
	},
	{
		name: "go-zero-seconds", module: goZero,
		broken:   "TokenLimiter counts time in whole seconds of the callers' clocks: the refill of a second is available at its start, even if the bucket was emptied just before.",
		when:     "Bursts around the start of a second.",
		command:  []string{"explore", "lib-go-zero-token"},
		property: "leak", policy: "1-request-refilling-1-per-1s",
		related: "https://github.com/zeromicro/go-zero/pull/1451", known: "reports it; the change was not taken", reported: true,
	},
	{
		name: "fiber-redis-race", module: fiber,
		broken:  "The limiter reads and writes its storage in two commands, under a lock of the process only: a lost update between instances.",
		when:    "Two instances that share a storage.",
		command: []string{"explore", "lib-fiber-redis"}, property: "leak",
		related: "https://github.com/gofiber/fiber/issues/4358", known: "reports it for several instances", reported: true,
	},
	{
		name: "redis-rate-at-most", module: redisRate,
		broken:   "AllowAtMost subtracts fractions of units from the bucket and grants whole units: a caller that takes all that is available loses up to one unit per call.",
		when:     "AllowAtMost for more than is available.",
		command:  []string{"explore", "lib-redis-rate-at-most"},
		property: "false-reject",
		related:  "https://github.com/go-redis/redis_rate/issues/68", known: "asks why the two scripts compare differently, and does not mention the loss",
	},
	{
		name: "gin-redis-race", module: gin,
		broken:  "The Redis store reads the count in one pipeline and writes it in another. Callers that read the same count are all admitted.",
		when:    "Any two callers at once.",
		command: []string{"explore", "lib-gin-redis"}, property: "leak",
	},
	{
		name: "gin-window", module: gin,
		broken:  "Every admitted request restarts the window, in both stores. A caller below the limit is rejected after as many requests as the limit, each within a window of the last.",
		when:    "More than one request per window.",
		command: []string{"explore", "lib-gin-memory"}, property: "false-reject",
	},
	{
		name: "gin-seconds", module: gin,
		broken:  "Both stores truncate the rate, a time.Duration, to whole seconds. Less than a second limits nothing, and 1.5 s is 1 s.",
		when:    "Rates that are not a whole number of seconds.",
		command: []string{"explore", "lib-gin-memory"}, property: "leak", policy: "1-request-per-first-request-500ms",
	},
	{
		name: "gin-memory-race", module: gin,
		broken:  "The memory store loads a caller's entry, changes a copy and stores it, without a lock: a lost update.",
		when:    "Any two callers at once.",
		command: []string{"run", "lib-gin-memory", "--policy", "window-calls", "--instances", "1", "--quick"},
	},
	{
		name: "httprate-late", module: httprate,
		broken: "A request computes its window before it takes the limiter's lock. If a request of the next window takes the lock first, the late one empties both counters.",
		when:   "Many callers at once when a window ends; the shorter the window, the more often.",
		command: []string{"run", "lib-httprate", "--policy", "200 calls per rolling 50ms", "--limit", "200", "--workload", "steady", "--subjects", "1",
			"--workers", "64", "--instances", "1", "--loop", "closed", "--duration", "1s", "--rounds", "2"},
		related: "https://github.com/go-chi/httprate/issues/2", known: "is about a check and a count in two steps, which is fixed; it does not mention the window",
	},
	{
		name: "beego-burst", module: beego,
		broken:  "The filter ratelimit caps its bucket after a request has taken a unit, not before: after a rest it holds one unit too many.",
		when:    "A burst after a rest longer than the bucket's refill time.",
		command: []string{"explore", "lib-beego"}, property: "leak",
	},
	{
		name: "jaeger-burst", module: jaeger,
		broken:  "The rate limiter adds new units only if the balance does not suffice. After a rest, leftover units are spent first, and then the rest refills the balance: a burst has up to twice the balance, less one if the limiter was in use before. The documentation says that every call refills.",
		when:    "A rest that begins before the balance is used up.",
		command: []string{"explore", "lib-jaeger"}, property: "leak",
	},
	{
		name: "oxy-fraction", module: oxy,
		broken:  "The bucket adds whole units and stores the current time: the fraction of a unit until then is lost. A caller that takes all that is available gets less than the rate, down to half of it.",
		when:    "Requests more frequent than the bucket's refill, and not in its rhythm.",
		command: []string{"explore", "lib-oxy"}, property: "false-reject",
	},
	{
		name: "oxy-forgets", module: oxy,
		broken: "A source's bucket expires ten times the whole seconds of its period, plus one second, after it was made, even in use, and the source gets a full one. A comment in the code says that this happens to inactive sources.",
		when:   "A burst that takes longer than ten periods to refill, e.g. 100 at 1 per second: 100 requests pass every 11 s.",
		command: []string{"run", "lib-oxy", "--policy", "100 calls refilling 1 per 1s", "--limit", "100", "--workload", "steady", "--subjects", "1",
			"--workers", "4", "--instances", "1", "--loop", "open", "--rate", "200", "--duration", "12s", "--rounds", "1"},
		related: "https://github.com/vulcand/oxy/issues/132", known: "says that the TTL is never renewed; closed", reported: true,
	},
	{
		name: "sethvargo-interval", module: redisStore,
		broken:  "The TTL is three times the whole seconds of the interval. For less than a second it is 0, and Redis deletes the key: every request finds a full bucket.",
		when:    "Intervals of less than a second.",
		command: []string{"explore", "lib-sethvargo-redis"}, property: "guarantee",
	},
	{
		name: "mennanov-ttl", module: mennanov,
		broken: "The README and both examples set the TTL of a token bucket's keys to the refill time of one token. The keys expire before the bucket is full again, and the caller gets a full one. The documentation does not mention this, and calls the bucket precise.",
		when:   "A capacity above one with the README's TTL: the whole capacity passes in the time of one token. A TTL of the bucket's refill time is right.",
		command: []string{"explore", "lib-mennanov-token-redis", "--policy", "2 requests refilling 1 per 1s", "--limit", "2", "--clients", "1",
			"--script", "take=2,take=2", "--faults", "clock", "--property", "leak", "--timeout", "5m"}, property: "leak",
	},
	{
		name: "mennanov-overflow", module: mennanov,
		broken: "SlidingWindow multiplies the previous window's count by the rest of this window in nanoseconds, as an int64. If that overflows, the product is negative or too small, and every request is below the limit.",
		when:   "Windows after a busy one, if limit times length exceeds 9.2e18 ns, e.g. 5,000 in 30 days or 200,000 in a day.",
		command: []string{"sim", "lib-mennanov-sliding-memory", "--policy", "5000 calls per rolling 720h", "--limit", "5000", "--workload", "steady", "--subjects", "1",
			"--instances", "1", "--rate", "0.05", "--duration", "1440h"},
		related: "https://github.com/mennanov/limiters/pull/116", known: "caps the count at the limit, and does not mention the product",
	},
}

// limit is what a library documents, decides on purpose, or was not made for.
// strategy is its adapter if nothing else on the page is about that.
type limit struct{ module, strategy, text string }

var limits = []limit{
	{throttled, "", "SetIfNotExistsWithTTL is documented as not atomic: the loser of a race replaces the winner's deadline (confirm: throttled-expire)."},
	{throttled, "", "Under contention callers get a documented error after ten attempts."},
	{"github.com/juju/ratelimit", "lib-juju-ratelimit", "Documented fixed ticks: one can follow at once after a burst, and one unit more than the bucket passes."},
	{gin, "", "Each memory store starts a goroutine that cannot be ended. It is made for one store per program (confirm: gin-cleaner)."},
	{httprate, "", "The window is weighted: up to twice the limit passes in its length."},
	{"github.com/failsafe-go/failsafe-go", "lib-failsafe-bursty", "The bursty limiter has consecutive periods, as documented: up to twice the limit passes in their length."},
	{"github.com/cockroachdb/tokenbucket", "lib-cockroach", "Rounding of a floating-point number can reject a request at the moment when a unit is complete."},
	{goZero, "", "A request that reaches Redis after those of a later second has it refilled again: <https://github.com/zeromicro/go-zero/issues/4072>. No search finds it separately, so it is not counted (confirm: go-zero-late)."},
	{fiber, "", "It silently admits every request while its storage fails."},
	{fiber, "", "A goroutine sets its time each second, which no search can move."},
	{"github.com/RussellLuo/slidingwindow", "lib-slidingwindow", "The window is weighted and truncated to whole calls, as documented: up to twice the limit passes in its length."},
	{"github.com/Clever/leakybucket", "", "The Redis store reads and raises the count in two commands, over its own connections, which no search reaches. It is documented as unfit for several threads."},
	{mennanov, "lib-mennanov-leaky-redis", "A token bucket or queue of several processes needs a lock or the race check, as documented. The adapters have one."},
	{mennanov, "lib-mennanov-leaky-memory", "The queue holds its capacity in addition to the request that was let through: one more than a bucket of that size."},
	{mennanov, "lib-mennanov-fixed-redis", "A request that reaches Redis after its window's end counts from one, so requests in progress then pass over the limit; the TTL is rounded down to milliseconds (confirm: mennanov-fixed). The counter is documented as lenient at the boundary of two windows."},
	{mennanov, "lib-mennanov-sliding-redis", "The window is weighted and counts rejected requests, as documented: up to twice the limit passes in its length, and callers that never pause are rejected wrongly."},
	{mennanov, "", "ConcurrentBuffer rounds the TTL of its Redis set down to whole seconds: requests in progress are forgotten early (confirm: mennanov-buffer)."},
	{"github.com/sethvargo/go-limiter", "lib-sethvargo-memory", "The memory store takes its time from inside package time, which no search can move."},
}

// clean are the libraries of which a command with default flags finds nothing.
var clean = []struct{ module, strategy string }{
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

// rebuilt are decisions of gateways in words of our own. What is found in them is found
// in what they publish, not in the gateways.
var rebuilt = []struct {
	source, text string
	command      []string
	// property that is broken; empty if nothing is to be found.
	property results.Property
	// thread about it; it reports what is found if reported is set.
	thread   string
	reported bool
}{
	{"https://github.com/Kong/kong/blob/master/kong/plugins/rate-limiting/policies/init.lua",
		"Kong's rate-limiting plugin with the policy redis and a sync_rate of -1.", []string{"explore", "gw-kong-redis", "--faults", "clock"}, "", "", false},
	{"https://github.com/Kong/kong/blob/master/kong/plugins/rate-limiting/policies/init.lua",
		"The same with a sync_rate of 0.1. The request that reads the counter is missing from the instance's count until the next sync: each instance admits one too many per interval. Kong documents later syncs as less accurate.",
		[]string{"explore", "gw-kong-sync", "--instances", "1", "--script", "take,take", "--limit", "2"}, "leak", "https://github.com/Kong/kong/pull/11859", false},
	{"https://github.com/brandur/redis-cell/blob/master/src/cell/mod.rs", "The command CL.THROTTLE of redis-cell, a GCRA.",
		[]string{"explore", "gw-redis-cell", "--clients", "1", "--script", "take,take,take", "--limit", "1", "--faults", "clock"}, "", "", false},
	{"https://stripe.com/blog/rate-limiters",
		"Stripe's token bucket sets a TTL of 0 if the bucket fills in less than half a second. The script then fails, and failures are admitted. Spring Cloud Gateway uses this script.",
		[]string{"explore", "gw-stripe"}, "leak", "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453", true},
	{"https://github.com/spring-cloud/spring-cloud-gateway/blob/main/spring-cloud-gateway-server/src/main/resources/META-INF/scripts/request_rate_limiter.lua",
		"The script of Spring Cloud Gateway keeps no bucket that fills in less than half a second: it limits nothing.",
		[]string{"explore", "gw-spring"}, "leak", "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453", true},
	{"https://blog.cloudflare.com/counting-things-a-lot-of-different-things/",
		"Cloudflare's weighted counters are read first and raised afterwards, a documented approximation.",
		[]string{"explore", "gw-cloudflare"}, "leak", "https://blog.cloudflare.com/counting-things-a-lot-of-different-things/", true},
}

// left are limiters that have no adapter.
var left = []struct{ name, why string }{
	{"failsafe-go, smooth", "It spaces calls by fixed ticks; the bursty one has an adapter."},
	{"bsm/ratelimit, abo/rerate, reugn/equalizer, Narasimha1997/ratelimiter, teambition/ratelimiter-go, krakend/krakend-ratelimit",
		"They could not be fetched."},
	{"alibaba/sentinel-golang, mailgun/gubernator, mholt/caddy-ratelimit, axiaoxin-com/ratelimiter, cloudwego/kitex",
		"They need servers, clouds or frameworks, do not export their decision, or are documented as approximate."},
	{"envoyproxy/ratelimit", "A service, [measured from outside](services.md)."},
	{"didip/tollbooth v8, gofiber/fiber v3", "They decide as v7 and v2, which have adapters."},
	{"go-kratos/aegis, platinummonkey/go-concurrency-limits", "They shed load and have no quota."},
	{"go.uber.org/ratelimit", "It delays callers and rejects none."},
}
