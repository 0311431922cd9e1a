"""Published limiters of Python behind one service: python3 app.py [fixed|elastic|moving|flask]

GET /?key=K answers 200 or 429. LIMIT requests pass per WINDOW seconds, on the Redis of REDIS_URL.
"""
import os
import sys

import flask
import flask_limiter
import limits

strategy = sys.argv[1] if len(sys.argv) > 1 else "fixed"
rate = f"{os.environ.get('LIMIT', 1)} per {os.environ.get('WINDOW', 60)} seconds"
redis_url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
names = {"fixed": "fixed-window", "elastic": "fixed-window-elastic-expiry", "moving": "moving-window"}
app = flask.Flask(__name__)


def key():
    return flask.request.args["key"]


if strategy == "flask":
    flask_limiter.Limiter(key, app=app, default_limits=[rate], storage_uri=redis_url)
else:
    storage = limits.storage.RedisStorage(redis_url)
    limiter = limits.strategies.STRATEGIES[names[strategy]](storage)


@app.get("/")
def decide():
    if strategy == "flask" or limiter.hit(limits.parse(rate), key()):
        return ""
    return "", 429


app.run("127.0.0.1", int(os.environ.get("PORT", 8080)))
