# rack-attack behind one service: ruby app.rb [redis|rails], on a plain client of Redis or on the cache store of Rails.
# GET /?key=K answers 200 or 429. LIMIT requests pass per WINDOW seconds, on the Redis of REDIS_URL.
require 'active_support'
require 'active_support/cache/redis_cache_store'
require 'rack'
require 'rack/attack'
require 'redis'

url = ENV.fetch('REDIS_URL', 'redis://127.0.0.1:6379')
Rack::Attack.cache.store =
  if ARGV[0] == 'rails' then ActiveSupport::Cache::RedisCacheStore.new(url: url)
  else Redis.new(url: url)
  end
Rack::Attack.throttle('key', limit: ENV.fetch('LIMIT', 1).to_i, period: ENV.fetch('WINDOW', 60).to_i) do |request|
  request.params['key']
end

app = Rack::Attack.new(->(_env) { [200, {}, ['']] })
Rack::Handler::WEBrick.run(app, Host: '127.0.0.1', Port: ENV.fetch('PORT', 8080).to_i, AccessLog: [], Logger: WEBrick::Log.new(nil, 1))
