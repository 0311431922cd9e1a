// Published limiters of npm behind one service: node libraries.js LIBRARY
// GET /?key=K answers 200 or 429. LIMIT requests pass per WINDOW seconds, on the Redis of REDIS_URL.
const http = require('node:http')
const Redis = require('ioredis')

const limit = Number(process.env.LIMIT ?? 1)
const seconds = Number(process.env.WINDOW ?? 60)
const ms = seconds * 1000
const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
const redis = () => new Redis(url, { enableReadyCheck: false })
const key = req => new URL(req.url, 'http://service').searchParams.get('key')

// middleware serves a middleware of Express in front of an answer of 200.
const middleware = use => {
  const app = require('express')()
  use(app)
  app.get('/', (req, res) => res.end())
  return app
}

// Each entry returns what decides about a key, or a handler of requests.
const libraries = {
  'async-ratelimiter': () => {
    const Limiter = require('async-ratelimiter')
    const limiter = new Limiter({ db: redis(), max: limit, duration: ms })
    return async id => (await limiter.get({ id })).remaining > 0
  },
  'express-brute': () => middleware(app => {
    const Brute = require('express-brute')
    const Store = require('express-brute-redis')
    const brute = new Brute(new Store({ client: redis() }), { freeRetries: limit - 1, minWait: ms, maxWait: ms, lifetime: seconds })
    app.use(brute.getMiddleware({ key: (req, res, next) => next(key(req)) }))
  }),
  'express-limiter': () => middleware(app => {
    app.use(require('express-limiter')(app, redis())({ lookup: 'query.key', total: limit, expire: ms }))
  }),
  'express-rate-limit': () => middleware(app => {
    const { rateLimit } = require('express-rate-limit')
    const { RedisStore } = require('rate-limit-redis')
    const client = redis()
    const store = new RedisStore({ sendCommand: (...command) => client.call(...command) })
    app.use(rateLimit({ windowMs: ms, limit, keyGenerator: key, store }))
  }),
  'fastify-rate-limit': () => {
    const app = require('fastify')()
    app.register(require('@fastify/rate-limit'), { max: limit, timeWindow: ms, redis: redis(), keyGenerator: key })
    app.register(async app => app.get('/', async () => ''))
    return { listen: (port, host) => app.listen({ port, host }) }
  },
  'graphql-rate-limit': () => {
    const { getGraphQLRateLimiter, RedisStore } = require('graphql-rate-limit')
    const limiter = getGraphQLRateLimiter({ identifyContext: c => c.id, store: new RedisStore(redis()) })
    return async id => !await limiter({ args: {}, context: { id }, info: { fieldName: 'f' } }, { max: limit, window: `${seconds}s` })
  },
  'hono-rate-limiter': () => {
    const { RedisStore } = require('@hono-rate-limiter/redis')
    const client = redis()
    const store = new RedisStore({ client: {
      scriptLoad: script => client.script('LOAD', script),
      evalsha: (sha, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args)
    } })
    store.init({ windowMs: ms })
    return async id => (await store.increment(id)).totalHits <= limit
  },
  'koa-ratelimit': () => {
    const app = new (require('koa'))()
    app.use(require('koa-ratelimit')({ driver: 'redis', db: redis(), duration: ms, max: limit, id: ctx => ctx.query.key }))
    app.use(ctx => { ctx.body = '' })
    return http.createServer(app.callback())
  },
  'koa2-ratelimit': () => {
    const app = new (require('koa'))()
    const { RateLimit } = require('koa2-ratelimit')
    const Store = require('koa2-ratelimit/src/RedisStore.js')
    app.use(RateLimit.middleware({ interval: ms, max: limit, store: new Store({ url }), keyGenerator: ctx => ctx.query.key }))
    app.use(ctx => { ctx.body = '' })
    return http.createServer(app.callback())
  },
  'nest-throttler': () => {
    const { ThrottlerStorageRedisService } = require('@nest-lab/throttler-storage-redis')
    const storage = new ThrottlerStorageRedisService(redis())
    return async id => !(await storage.increment(id, ms, limit, ms, 'default')).isBlocked
  },
  'oss-ratelimit': async () => {
    const { Ratelimit, slidingWindow, getRedisClient } = require('oss-ratelimit')
    const limiter = new Ratelimit({ redis: await getRedisClient({ url }), limiter: slidingWindow(limit, `${seconds} s`), ephemeralCache: false })
    limiter.on('error', () => {})
    return async id => (await limiter.limit(id)).success
  },
  'oss-ratelimit-bucket': async () => {
    const { Ratelimit, tokenBucket, getRedisClient } = require('oss-ratelimit')
    const limiter = new Ratelimit({ redis: await getRedisClient({ url }), limiter: tokenBucket(1, `${seconds} s`, limit) })
    return async id => (await limiter.limit(id)).success
  },
  'rate-limiter-flexible': () => {
    const { RateLimiterRedis } = require('rate-limiter-flexible')
    const limiter = new RateLimiterRedis({ storeClient: redis(), points: limit, duration: seconds })
    return id => limiter.consume(id).then(() => true, err => { if (err instanceof Error) throw err; return false })
  },
  'ratelimit.js': () => {
    const { RateLimit } = require('ratelimit.js')
    const limiter = new RateLimit(redis(), [{ interval: seconds, limit, precision: 1 }])
    return id => new Promise((resolve, reject) => limiter.incr(id, (err, over) => err ? reject(err) : resolve(!over)))
  },
  ratelimiter: () => {
    const Limiter = require('ratelimiter')
    const db = redis()
    return id => new Promise((resolve, reject) => new Limiter({ id, db, max: limit, duration: ms })
      .get((err, { remaining } = {}) => err ? reject(err) : resolve(remaining > 0)))
  },
  'redis-bucket': () => {
    const allow = require('redis-bucket').create({ client: redis(), rate: { flow: limit / seconds, burst: limit } })
    return async id => (await allow(id)).allow
  },
  'redis-gcra': () => {
    const limiter = require('redis-gcra')({ redis: redis(), burst: limit, rate: limit, period: ms })
    return async id => !(await limiter.limit({ key: id })).limited
  },
  'redis-rate-limiter': () => {
    const limiter = require('redis-rate-limiter').create({ redis: redis(), key: id => id, limit, window: seconds })
    return id => new Promise((resolve, reject) => limiter(id, (err, { over } = {}) => err ? reject(err) : resolve(!over)))
  },
  'rolling-rate-limiter': () => {
    const { RedisRateLimiter } = require('rolling-rate-limiter')
    const limiter = new RedisRateLimiter({ client: redis(), namespace: 'rolling:', interval: ms, maxInInterval: limit })
    return async id => !await limiter.limit(id)
  },
  'sliding-window-rate-limiter': async () => {
    const { SlidingWindowRateLimiter } = await import('sliding-window-rate-limiter')
    const limiter = SlidingWindowRateLimiter.createLimiter({ redis: redis(), interval: ms })
    return async id => Boolean((await limiter.reserve(id, limit)).token)
  }
}

// decider makes a handler of what decides about a key.
const decider = allow => http.createServer(async (req, res) => {
  try {
    res.statusCode = await allow(key(req)) ? 200 : 429
  } catch (err) {
    console.error(err)
    res.statusCode = 500
  }
  res.end()
})

// serve listens on PORT with a library of the list.
const serve = async name => {
  const service = await libraries[name]()
  const server = service.listen ? service : decider(service)
  server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1')
}

if (process.argv[2] in libraries) serve(process.argv[2])
else console.log(Object.keys(libraries).join('\n'))
