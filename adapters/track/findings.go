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
	// empty where run finds it.
	command  []string
	property results.Property
	// policy of the search that finds it, where a search before it breaks the property for
	// another reason.
	policy string
	// related is the nearest thread that a search found, empty for none, and known says
	// what that thread says.
	related, known string
	// reported is set where that thread is about this defect of this library.
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
		broken:  "On Redis the key that holds the state lives for a whole number of seconds, rounded down. It expires before the bucket is full again, and the caller gets a full bucket. The store's documentation says that it rounds; the limiter's does not say that the limit goes with it.",
		when:    "Rates of which a unit flows in during a number of seconds that is not whole, e.g. 31 per minute without a burst.",
		command: []string{"explore", "lib-throttled-redis"}, property: "leak", policy: "1-request-refilling-2-per-3s",
	},
	{
		name: "go-zero-ttl", module: goZero,
		broken: "TokenLimiter has its keys live for twice the time in which the bucket fills, in whole seconds, rounded down. That is 0, which Redis " +
			"refuses: the script never succeeds, and each process decides by its own bucket and says so only in the log.",
		when:    "A burst of less than half the rate, e.g. 40 at 100 per second.",
		command: []string{"explore", "lib-go-zero-token"}, property: "leak",
		related: "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453", known: "speaks of the same script in Spring Cloud Gateway, which therefore has no limit at all; none was found in go-zero",
	},
	{
		name: "go-zero-seconds", module: goZero,
		broken:   "TokenLimiter counts time in whole seconds of the callers' clocks: what a second lets flow in is there at its first moment, even if the bucket was emptied just before.",
		when:     "Bursts around the start of a second.",
		command:  []string{"explore", "lib-go-zero-token"},
		property: "leak", policy: "1-request-refilling-1-per-1s",
		related: "https://github.com/zeromicro/go-zero/pull/1451", known: "reports it; the change was not taken", reported: true,
	},
	{
		name: "fiber-redis-race", module: fiber,
		broken:  "The limiter reads and writes its storage in two commands, under a lock of the process: instances that share a storage admit on one count.",
		when:    "Two instances that share a storage.",
		command: []string{"explore", "lib-fiber-redis"}, property: "leak",
		related: "https://github.com/gofiber/fiber/issues/4358", known: "says so of the limiter in several instances", reported: true,
	},
	{
		name: "redis-rate-at-most", module: redisRate,
		broken: "AllowAtMost takes parts of units off the bucket and grants what is left when they are cut off: whoever takes what is there loses " +
			"up to one unit in each call.",
		when:     "AllowAtMost asked for more than is there.",
		command:  []string{"explore", "lib-redis-rate-at-most"},
		property: "false-reject",
		related:  "https://github.com/go-redis/redis_rate/issues/68", known: "asks why the two scripts compare differently, and does not speak of what is lost",
	},
	{
		name: "gin-redis-race", module: gin,
		broken:  "The Redis store reads the count in one pipeline and writes it in another. Callers who read the same count are all admitted.",
		when:    "Any two callers at once.",
		command: []string{"explore", "lib-gin-redis"}, property: "leak",
	},
	{
		name: "gin-window", module: gin,
		broken: "Every admitted request restarts the window, in both stores. A caller who stays below the limit is rejected once so many " +
			"requests have come one after the other, each within a window of the last.",
		when:    "Requests that come more often than once per window.",
		command: []string{"explore", "lib-gin-memory"}, property: "false-reject",
	},
	{
		name: "gin-seconds", module: gin,
		broken:  "The rate is a time.Duration that both stores cut down to whole seconds. One of less than a second limits nothing, and one of 1.5 s is one of 1 s.",
		when:    "Rates that are no whole number of seconds.",
		command: []string{"explore", "lib-gin-memory"}, property: "leak", policy: "1-request-per-first-request-500ms",
	},
	{
		name: "gin-memory-race", module: gin,
		broken:  "The memory store loads a caller's entry, changes a copy and stores that, without a lock. Callers at once are admitted on one count.",
		when:    "Any two callers at once.",
		command: []string{"run", "lib-gin-memory", "--policy", "window-calls", "--instances", "1", "--quick"},
	},
	{
		name: "httprate-late", module: httprate,
		broken: "A request computes its window before it takes the limiter's lock. One that takes the lock after a request of the next window " +
			"empties both counters, and everybody begins at zero.",
		when: "Many callers at once when a window ends; the shorter the window, the more often.",
		command: []string{"run", "lib-httprate", "--policy", "200 calls per rolling 50ms", "--limit", "200", "--workload", "steady", "--subjects", "1",
			"--workers", "64", "--instances", "1", "--loop", "closed", "--duration", "1s", "--rounds", "2"},
		related: "https://github.com/go-chi/httprate/issues/2", known: "speaks of requests that are checked and counted in two steps, which is fixed; it does not mention the window",
	},
	{
		name: "beego-burst", module: beego,
		broken:  "The bucket of the filter ratelimit is cut down to its size after a request has taken a unit, and not before: after a rest it holds one unit too many.",
		when:    "A burst after a rest of longer than the bucket takes to fill.",
		command: []string{"explore", "lib-beego"}, property: "leak",
	},
	{
		name: "jaeger-burst", module: jaeger,
		broken: "The rate limiter adds new units only if the balance does not suffice. Units that were left over from before a rest are spent first, " +
			"and the time of the rest fills the balance again: a burst is of up to twice the balance, less one if the limiter was in use before the rest. Its documentation says that every call fills it.",
		when:    "A rest before which the balance was not used up.",
		command: []string{"explore", "lib-jaeger"}, property: "leak",
	},
	{
		name: "oxy-fraction", module: oxy,
		broken: "The bucket counts whole units, and notes the time at which it did: the part of a unit that had flowed in by then is lost. A caller who " +
			"takes what is there gets less than the rate, down to half of it.",
		when:    "Requests that come more often than the bucket takes to fill, and not in its rhythm.",
		command: []string{"explore", "lib-oxy"}, property: "false-reject",
	},
	{
		name: "oxy-forgets", module: oxy,
		broken: "The bucket of a source is forgotten ten times the whole seconds of its period, and one second, after it was made, in use or not, and the source is given a full one. " +
			"A comment in the code says that it happens when the source was inactive.",
		when: "A burst that takes longer than ten periods to fill, e.g. 100 at 1 per second: 100 requests pass every 11 s.",
		command: []string{"run", "lib-oxy", "--policy", "100 calls refilling 1 per 1s", "--limit", "100", "--workload", "steady", "--subjects", "1",
			"--workers", "4", "--instances", "1", "--loop", "open", "--rate", "200", "--duration", "12s", "--rounds", "1"},
		related: "https://github.com/vulcand/oxy/issues/132", known: "says that the time to live is never renewed; it is closed", reported: true,
	},
	{
		name: "sethvargo-interval", module: redisStore,
		broken: "The key lives for three times the whole seconds of the interval. Of an interval of less than a second that is 0, which has Redis delete the key: " +
			"every request finds a full bucket.",
		when:    "Intervals of less than a second.",
		command: []string{"explore", "lib-sethvargo-redis"}, property: "guarantee",
	},
	{
		name: "mennanov-ttl", module: mennanov,
		broken: "The README and both examples have the keys of a token bucket live as long as one token takes to flow in. They expire before the bucket is full again, " +
			"and the caller is given a full one. The documentation says of the time to live only that it is that of the keys, and of the bucket that it is precise.",
		when: "A capacity of more than one, with the time to live of the README: the whole capacity passes in the time of one token. A time to live in which the bucket fills is right.",
		command: []string{"explore", "lib-mennanov-token-redis", "--policy", "2 requests refilling 1 per 1s", "--limit", "2", "--clients", "1",
			"--script", "take=2,take=2", "--faults", "clock", "--property", "leak", "--timeout", "5m"}, property: "leak",
	},
	{
		name: "mennanov-overflow", module: mennanov,
		broken: "SlidingWindow multiplies the count of the window before by what is left of this one, in nanoseconds, as an int64. If that does not fit, the product is negative or too small, and every request is below the limit.",
		when:   "Windows that follow a busy one, where limit times length is more than 9.2e18 ns, e.g. 5,000 in 30 days or 200,000 in a day.",
		command: []string{"sim", "lib-mennanov-sliding-memory", "--policy", "5000 calls per rolling 720h", "--limit", "5000", "--workload", "steady", "--subjects", "1",
			"--instances", "1", "--rate", "0.05", "--duration", "1440h"},
		related: "https://github.com/mennanov/limiters/pull/116", known: "caps what is counted at the limit, and does not speak of the product",
	},
}

// limit is what a library documents, decides on purpose, or was not made for.
// strategy is its adapter where nothing else on the page is about that.
type limit struct{ module, strategy, text string }

var limits = []limit{
	{throttled, "", "SetIfNotExistsWithTTL is documented as not atomic: a caller who loses the race replaces the winner's deadline. Repeated alone: `go run ./cmd/confirm throttled-expire`."},
	{throttled, "", "Under contention callers are answered with an error after ten attempts, as MaxCASAttemptsLimit documents. It admits nothing."},
	{"github.com/juju/ratelimit", "lib-juju-ratelimit", "The bucket is filled in ticks of a fixed rhythm: a unit can flow in at once after it was used up, so one more than the bucket holds passes in a window. Its documentation speaks of ticks."},
	{gin, "", "Each memory store starts a goroutine that never ends, and offers no way to end it. It is made for one store per program. Repeated alone: " +
		"`go run ./cmd/confirm gin-cleaner`."},
	{httprate, "", "The window is weighted, so up to twice the limit passes in a stretch of its length, as with every counter of this kind."},
	{"github.com/failsafe-go/failsafe-go", "lib-failsafe-bursty", "The bursty limiter has periods that follow each other, and the limit holds in each: up to twice the limit passes in a stretch of " +
		"their length. Its documentation speaks of a maximum per time period."},
	{"github.com/cockroachdb/tokenbucket", "lib-cockroach", "The bucket is a floating-point number: at the very moment at which a unit is complete it can be short of it by a rounding error, " +
		"and rejects a request that comes just then."},
	{goZero, "", "A request that Redis gets after those of a later second sets the bucket's time back, and the second flows in again: a defect that " +
		"<https://github.com/zeromicro/go-zero/issues/4072> reports. No search here finds it apart from go-zero-seconds, so it is not counted. Repeated alone: " +
		"`go run ./cmd/confirm go-zero-late`."},
	{fiber, "", "It admits every request while its storage fails, and says nothing."},
	{fiber, "", "It takes the time from a variable that one goroutine of the program sets each second, and nothing here can move it."},
	{"github.com/RussellLuo/slidingwindow", "lib-slidingwindow", "The window is weighted, and what is weighed is cut down to whole calls, so up to twice the limit passes in a stretch of " +
		"its length. Its documentation says that it is an approximation."},
	{"github.com/Clever/leakybucket", "", "The store on Redis reads the count and raises it in two commands. It opens its own connections, which no search reaches. Its documentation " +
		"says that the store is not for several threads, and nothing of several processes."},
	{mennanov, "lib-mennanov-leaky-redis", "A token bucket or a queue on a store needs a lock, or the library's check for races, if several processes ask: its documentation says so. The " +
		"adapters have one of the two."},
	{mennanov, "lib-mennanov-leaky-memory", "The queue holds as many requests as its capacity in addition to the one that was let through: one more passes than the bucket of that size holds. Each is " +
		"told how long to wait, and whoever waits comes at the rate."},
	{mennanov, "lib-mennanov-fixed-redis", "A request that reaches Redis after the end of its window finds the key gone and is counted from one, so requests in progress at that moment pass over the limit. The key lives for whole milliseconds, rounded down, so an instance that has not been told of the limit finds none in the last of them; repeated alone: " +
		"`go run ./cmd/confirm mennanov-fixed`. Its documentation calls the counter lenient at the boundary of two windows."},
	{mennanov, "lib-mennanov-sliding-redis", "The window is weighted, and counts what it rejects: up to twice the limit passes in a stretch of its length, and who asks without a pause is " +
		"rejected though there is room. Its documentation says both."},
	{mennanov, "", "ConcurrentBuffer has its set on Redis live for whole seconds, rounded down: if its time to live is not whole, requests under way are forgotten before it is over. Standing " +
		"quotas of libraries have no adapter. Repeated alone: `go run ./cmd/confirm mennanov-buffer`."},
	{"github.com/sethvargo/go-limiter", "lib-sethvargo-memory", "The memory store takes the time from within package time, and nothing here can move it. It is measured, and " +
		"nothing is claimed about it."},
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
	// property that is broken; empty where nothing is to be found.
	property results.Property
	// thread about it; it reports what is found where reported is set.
	thread   string
	reported bool
}{
	{"https://github.com/Kong/kong/blob/master/kong/plugins/rate-limiting/policies/init.lua",
		"Kong's rate-limiting plugin with the policy redis and a sync_rate of -1.", []string{"explore", "gw-kong-redis", "--faults", "clock"}, "", "", false},
	{"https://github.com/Kong/kong/blob/master/kong/plugins/rate-limiting/policies/init.lua",
		"The same with a sync_rate of 0.1. The request with which an instance reads the counter is taken off what that instance counts, since Redis has counted it, and so " +
			"is missing until counts are brought to Redis: each instance admits one too many in each such interval. The linked change takes it off, and speaks of Redis alone; Kong calls counters that are brought later less accurate.",
		[]string{"explore", "gw-kong-sync", "--instances", "1", "--script", "take,take", "--limit", "2"}, "leak", "https://github.com/Kong/kong/pull/11859", false},
	{"https://github.com/brandur/redis-cell/blob/master/src/cell/mod.rs", "The command CL.THROTTLE of redis-cell, a GCRA.",
		[]string{"explore", "gw-redis-cell", "--clients", "1", "--script", "take,take,take", "--limit", "1", "--faults", "clock"}, "", "", false},
	{"https://stripe.com/blog/rate-limiters",
		"Stripe's token bucket gives its keys no time to live if the bucket fills in less than half a second. The script then fails, and what fails is admitted. It is the script that Spring Cloud Gateway took over.",
		[]string{"explore", "gw-stripe"}, "leak", "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453", true},
	{"https://github.com/spring-cloud/spring-cloud-gateway/blob/main/spring-cloud-gateway-server/src/main/resources/META-INF/scripts/request_rate_limiter.lua",
		"The script of Spring Cloud Gateway keeps no bucket that fills in less than half a second: it then limits nothing.",
		[]string{"explore", "gw-spring"}, "leak", "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453", true},
	{"https://blog.cloudflare.com/counting-things-a-lot-of-different-things/",
		"Cloudflare's weighted counters are read first and counted afterwards. The source calls them an approximation, and says how close it came.",
		[]string{"explore", "gw-cloudflare"}, "leak", "https://blog.cloudflare.com/counting-things-a-lot-of-different-things/", true},
}

// left are limiters that have no adapter.
var left = []struct{ name, why string }{
	{"failsafe-go, smooth", "It spaces calls evenly, by ticks of a fixed rhythm; the bursty one has an adapter."},
	{"bsm/ratelimit, abo/rerate, reugn/equalizer, Narasimha1997/ratelimiter, teambition/ratelimiter-go, krakend/krakend-ratelimit",
		"They could not be fetched when this was written. Nothing is said about them."},
	{"alibaba/sentinel-golang, mailgun/gubernator, mholt/caddy-ratelimit, axiaoxin-com/ratelimiter, cloudwego/kitex",
		"They bring servers, clouds or frameworks with them, keep what decides to themselves, or call what they do approximate. Nothing is said about them."},
	{"envoyproxy/ratelimit", "It is a service, and measured from outside: see services.md."},
	{"didip/tollbooth v8", "It decides as v7 does, which has an adapter."},
	{"gofiber/fiber v3", "It decides as v2 does, which has an adapter."},
	{"go-kratos/aegis, platinummonkey/go-concurrency-limits", "They shed load by what a server can bear: there is no quota."},
	{"go.uber.org/ratelimit", "It delays callers and rejects none: there is no decision to judge."},
}
