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
)

var findings = []finding{
	{
		name: "throttled-ttl", module: throttled,
		broken: "On Redis the key that holds the state lives for a whole number of seconds, rounded down. It expires before the bucket is full " +
			"again, and the caller is given a full bucket. The store's documentation says that it rounds; the limiter's does not say that the limit goes with it.",
		when:    "Rates of which a unit flows in during a number of seconds that is not whole, e.g. 31 per minute without a burst.",
		command: []string{"explore", "lib-throttled-redis", "--policy", "1 call refilling 2 per 3s", "--clients", "1", "--script", "take,take", "--faults", "clock"}, property: "leak",
	},
	{
		name: "go-zero-ttl", module: goZero,
		broken: "TokenLimiter has its keys live for twice the time in which the bucket fills, in whole seconds, rounded down. That is 0, which Redis " +
			"refuses: the script never succeeds, and each process decides by a bucket of its own without a word but in the log.",
		when:    "A burst of less than half the rate, e.g. 40 at 100 per second.",
		command: []string{"explore", "lib-go-zero-token"}, property: "leak",
		related: "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453", known: "speaks of the same script in Spring Cloud Gateway, where it is the cause of no limit at all; none was found in go-zero",
	},
	{
		name: "go-zero-seconds", module: goZero,
		broken: "TokenLimiter counts time in whole seconds of the callers' clocks: what a second lets flow in is there at its first moment, however " +
			"short ago the bucket was emptied.",
		when:     "Bursts around the beginning of a second.",
		command:  []string{"explore", "lib-go-zero-token", "--policy", "1 call refilling 1 per 1s", "--limit", "1", "--clients", "1", "--script", "take,take", "--faults", "clock"},
		property: "leak",
		related:  "https://github.com/zeromicro/go-zero/pull/1451", known: "reports it; the change was not taken", reported: true,
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
		when: "AllowAtMost asked for more than is there.",
		command: []string{"explore", "lib-redis-rate-at-most", "--policy", "2 calls refilling 1 per 1s", "--limit", "2", "--clients", "1",
			"--script", "take,take=2,take=1", "--faults", "clock", "--property", "false-reject"},
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
		broken: "Every admitted request begins the window anew, in both stores. A caller who stays below the limit is rejected once so many " +
			"requests have come one after the other, each within a window of the last.",
		when:    "Requests that come more often than once per window.",
		command: []string{"explore", "lib-gin-memory", "--clients", "1", "--script", "take,take,take", "--faults", "clock"}, property: "false-reject",
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
		related: "https://github.com/go-chi/httprate/issues/2", known: "speaks of requests that are checked and counted in two steps, which is mended; not of the window",
	},
}

// limit is what a library documents, decides on purpose, or was not made for.
// strategy is its adapter where nothing else on the page is about that.
type limit struct{ module, strategy, text string }

var limits = []limit{
	{throttled, "", "SetIfNotExistsWithTTL is documented as not atomic: a caller who loses the race sets the winner's deadline to that of its own " +
		"request. Repeated alone: `go run ./cmd/confirm throttled-expire`."},
	{throttled, "", "Under contention callers are answered with an error after ten attempts, as MaxCASAttemptsLimit documents. It admits nothing."},
	{"github.com/juju/ratelimit", "lib-juju-ratelimit", "The bucket is filled in ticks of a fixed rhythm: a unit can flow in at once after it was used up, so that one more " +
		"than the bucket holds passes in a window. Its documentation speaks of ticks."},
	{gin, "", "Each memory store starts a goroutine that never ends, and offers no way to end it. It is made for one store per program. Repeated alone: " +
		"`go run ./cmd/confirm gin-cleaner`."},
	{httprate, "", "The window is weighted, so that up to twice the limit passes in a stretch of its length, as with every counter of this kind."},
	{goZero, "", "A request that Redis gets after those of a later second sets the bucket's time back, and the second flows in again: a defect that " +
		"<https://github.com/zeromicro/go-zero/issues/4072> reports. No search here finds it apart from go-zero-seconds, so it is not counted. Repeated alone: " +
		"`go run ./cmd/confirm go-zero-late`."},
	{fiber, "", "It admits every request while its storage fails, and says nothing."},
	{fiber, "", "It takes the time from a variable that one goroutine of the program sets each second, where nothing here can move it."},
	{"github.com/sethvargo/go-limiter", "lib-sethvargo-memory", "The memory store takes the time from within package time, where nothing here can move it. It is measured, and " +
		"nothing is claimed about it."},
}

// clean are the searches in which nothing was found.
var clean = []struct {
	module   string
	commands [][]string
}{
	{redisRate, [][]string{{"explore", "lib-redis-rate"}, {"explore", "lib-redis-rate", "--clients", "1", "--script", "take,take", "--limit", "1", "--faults", "clock"}}},
	{throttled, [][]string{{"explore", "lib-throttled-memory", "--instances", "1", "--faults", "clock"}}},
	{"github.com/ulule/limiter/v3", [][]string{{"explore", "lib-ulule-redis"},
		{"explore", "lib-ulule-redis", "--clients", "1", "--script", "take,take", "--limit", "1", "--faults", "clock"},
		{"explore", "lib-ulule-memory", "--instances", "1", "--faults", "clock"}}},
	{goZero, [][]string{{"explore", "lib-go-zero-period"}, {"explore", "lib-go-zero-period", "--clients", "1", "--script", "take,take", "--limit", "1", "--faults", "clock"}}},
	{"github.com/didip/tollbooth/v7", [][]string{{"explore", "lib-tollbooth", "--instances", "1", "--faults", "clock"}}},
	{"github.com/failsafe-go/failsafe-go", [][]string{{"explore", "lib-failsafe-bursty", "--instances", "1", "--faults", "clock"}}},
	{"golang.org/x/time", [][]string{{"explore", "lib-x-time-rate", "--instances", "1", "--faults", "clock"}}},
	{"github.com/labstack/echo/v4", [][]string{{"explore", "lib-echo-memory", "--instances", "1", "--faults", "clock"}}},
}

// rebuilt are decisions of gateways in words of our own. What is found in them is found
// in what they publish, not in the gateways.
var rebuilt = []struct {
	source, text string
	command      []string
	// property that is broken; empty where nothing is to be found.
	property results.Property
	// known is the thread that reports it, empty where none was looked for.
	known string
}{
	{"https://github.com/Kong/kong/blob/master/kong/plugins/rate-limiting/policies/init.lua",
		"Kong's rate-limiting plugin with the policy redis and a sync_rate of -1.", []string{"explore", "gw-kong-redis", "--faults", "clock"}, "", ""},
	{"https://github.com/spring-cloud/spring-cloud-gateway/blob/main/spring-cloud-gateway-server/src/main/resources/META-INF/scripts/request_rate_limiter.lua",
		"The script of Spring Cloud Gateway keeps no bucket that fills in less than half a second: it then limits nothing.",
		[]string{"explore", "gw-spring"}, "leak", "https://github.com/spring-cloud/spring-cloud-gateway/pull/2453"},
	{"https://blog.cloudflare.com/counting-things-a-lot-of-different-things/",
		"Cloudflare's weighted counters are read first and counted afterwards. The source calls them an approximation, and says how close it came.",
		[]string{"explore", "gw-cloudflare"}, "leak", "https://blog.cloudflare.com/counting-things-a-lot-of-different-things/"},
}

// left are limiters that have no adapter.
var left = []struct{ name, why string }{
	{"failsafe-go, smooth", "It spaces calls evenly, by ticks of a fixed rhythm; the bursty one has an adapter."},
	{"mennanov/limiters, sethvargo/go-redisstore, didip/tollbooth v8, bsm/ratelimit, beefsack/go-rate, abo/rerate, reugn/equalizer, " +
		"Narasimha1997/ratelimiter, RussellLuo/slidingwindow, axiaoxin-com/ratelimiter, alibaba/sentinel-golang, vulcand/oxy, mholt/caddy-ratelimit",
		"They could not be fetched where this was written. Nothing is said about them."},
	{"go-kratos/aegis, platinummonkey/go-concurrency-limits", "They shed load by what a server can bear: there is no quota."},
	{"go.uber.org/ratelimit", "It delays callers and rejects none: there is no decision to judge."},
}
