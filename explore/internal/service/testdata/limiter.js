// A limiter over plain sockets, with nothing to install: node limiter.js KIND
const http = require('http'), net = require('net')
const limit = +process.env.LIMIT
const waiting = []
let redis, buffer = ''
const read = data => {
  buffer += data
  for (let end; (end = buffer.indexOf('\r\n')) >= 0;) {
    let value = buffer.slice(1, end), used = end + 2
    if (buffer[0] === '$' && value !== '-1') {
      const length = +value
      if (buffer.length < used + length + 2) return
      value = buffer.slice(used, used + length)
      used += length + 2
    } else if (buffer[0] === '$') value = null
    buffer = buffer.slice(used)
    waiting.shift().done(value)
  }
}
const connect = () => {
  redis = net.connect(+process.env.REDIS_PORT, process.env.REDIS_HOST)
  redis.setNoDelay(true)
  redis.on('data', read)
  redis.on('error', () => {})
  redis.on('close', () => {
    buffer = ''
    for (const one of waiting.splice(0)) one.fail(new Error('the connection is lost'))
    setTimeout(connect, 10)
  })
}
connect()
const send = (...words) => new Promise((done, fail) => {
  if (redis.destroyed) return fail(new Error('there is no connection')) // or its reply would be taken for the next one's
  waiting.push({ done, fail })
  redis.write(`*${words.length}\r\n` + words.map(w => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`).join(''))
})
const kinds = {
  'get-set': async key => {
    const n = +(await send('GET', key))
    if (n >= limit) return false
    await send('SET', key, n + 1, 'EX', 60)
    return true
  },
  lua: async key => +(await send('EVAL',
    "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], 60) end return n", 1, key)) <= limit,
  // Two callers at one moment are one member.
  clock: async key => {
    const now = Date.now()
    await send('ZADD', key, now, now)
    return +(await send('ZCARD', key)) <= limit
  },
  // The window is that of the process' own clock.
  minute: async key => +(await send('INCR', key + ':' + Math.floor(Date.now() / 60000))) <= limit,
  // EXPIRE is sent, and not waited for.
  careless: async key => {
    const n = +(await send('INCR', key))
    if (n === 1) send('EXPIRE', key, 60).catch(() => {})
    return n <= limit
  },
}
http.createServer(async (request, answer) => {
  const key = new URL(request.url, 'http://x').searchParams.get('key')
  try {
    answer.statusCode = await kinds[process.argv[2]](key) ? 200 : 429
  } catch {
    answer.statusCode = 500
  }
  answer.end()
}).listen(+process.env.PORT, '127.0.0.1')
