#!/usr/bin/env bash
# Sends requests of one key to two instances of a service, without quotabench: LIMIT=1 ./alone.sh COMMAND [ARGUMENT...]
# It prints how many of 10 requests at once are admitted, and the TTLs of the keys, in seconds.
# DATABASE_URL=postgres://…  of an empty database: in place of a pause of Redis, COMMIT of what has written takes 100 ms
# PAUSE=S   10 more requests follow after S seconds
# STALL=MS  Redis executes no writes for MS milliseconds, and meanwhile one request more is sent; 10 follow
set -euo pipefail

dir=$(mktemp -d)
set -m # a group for each program, which ends with it
trap 'for p in $(jobs -p); do kill -- "-$p" 2>/dev/null || true; done; wait 2>/dev/null; rm -rf "$dir"' EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
redis_port=$(free_port)
redis-server --bind 127.0.0.1 --port "$redis_port" --save '' --dir "$dir" >"$dir/redis.log" &
redis=(redis-cli -p "$redis_port")
until "${redis[@]}" ping >/dev/null 2>&1; do sleep 0.05; done
export REDIS_URL=redis://127.0.0.1:$redis_port LIMIT=${LIMIT:-1} WINDOW=${WINDOW:-3600}
urls=()
for _ in 1 2; do
  PORT=$(free_port)
  PORT=$PORT "$@" >>"$dir/service.log" 2>&1 &
  urls+=("http://127.0.0.1:$PORT/?key")
done
for url in "${urls[@]}"; do
  for _ in $(seq 200); do curl -s -o "$dir/answer" "$url=first" && break; sleep 0.05; done
done

# A standby that confirms what was written has COMMIT take long, too.
slow_commit="CREATE FUNCTION slow_commit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END';
  DO \$\$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
      EXECUTE format('CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT OR UPDATE ON %I DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION slow_commit()', name);
    END LOOP;
  END \$\$"
if [ -n "${DATABASE_URL:-}" ]; then psql -q "$DATABASE_URL" -c "$slow_commit"; fi

# burst sends 10 requests while Redis does not answer for 300 ms, so that none has an answer before all are sent.
burst() {
  "${redis[@]}" client pause 300 all >/dev/null
  curl -s --no-progress-meter --parallel --parallel-immediate -w '%{http_code}\n' \
    -o "$dir/answer" "${urls[0]}=alone&n=[1-5]" -o "$dir/answer" "${urls[1]}=alone&n=[1-5]" | grep -c 200 || true
}
echo "limit $LIMIT per $WINDOW s: $(burst) of 10 requests at once admitted"
"${redis[@]}" --scan --pattern '*alone*' | while read -r key; do echo "TTL of $key: $("${redis[@]}" ttl "$key")"; done
if [ -n "${STALL:-}" ]; then
  "${redis[@]}" client pause "$STALL" write >/dev/null
  curl -s -o "$dir/answer" -w 'while Redis executes no writes: %{http_code}\n' "${urls[0]}=alone"
  PAUSE=0
fi
if [ -n "${PAUSE:-}" ]; then
  sleep "$PAUSE"
  echo "after $PAUSE s: $(burst) of 10 admitted"
fi
