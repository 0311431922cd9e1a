"""Throttles that keep their counts in PostgreSQL: python3 postgres.py [count|update|row-lock|advisory]

GET /?key=K answers 200 or 429. LIMIT requests pass, on the PostgreSQL of DATABASE_URL.
"""
import contextlib
import http.server
import os
import sys
import urllib.parse

import psycopg2

limit = int(os.environ.get("LIMIT", 1))


@contextlib.contextmanager
def transaction():
    """A connection and a transaction of their own, as Django has them for each request by default."""
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    try:
        with connection, connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


def hit(cursor, subject):
    """Counts the rows of a subject, and adds one if there is room."""
    cursor.execute("SELECT count(*) FROM hits WHERE subject = %s", [subject])
    if cursor.fetchone()[0] >= limit:
        return False
    cursor.execute("INSERT INTO hits (subject) VALUES (%s)", [subject])
    return True


def count(subject):
    """Two requests that have both counted both add a row."""
    with transaction() as cursor:
        return hit(cursor, subject)


def add_quota(subject):
    with transaction() as cursor:
        cursor.execute("INSERT INTO quotas VALUES (%s, 0) ON CONFLICT DO NOTHING", [subject])


def update(subject):
    """The condition is checked again once the row is free."""
    add_quota(subject)
    with transaction() as cursor:
        cursor.execute("UPDATE quotas SET used = used + 1 WHERE subject = %s AND used < %s", [subject, limit])
        return cursor.rowcount == 1


def row_lock(subject):
    add_quota(subject)
    with transaction() as cursor:
        cursor.execute("SELECT used FROM quotas WHERE subject = %s FOR UPDATE", [subject])
        if cursor.fetchone()[0] >= limit:
            return False
        cursor.execute("UPDATE quotas SET used = used + 1 WHERE subject = %s", [subject])
        return True


def advisory(subject):
    """The lock is given up before COMMIT, and until then nobody else sees the row."""
    with transaction() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", [subject])
        admitted = hit(cursor, subject)
        cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [subject])
        return admitted


throttles = {"count": count, "update": update, "row-lock": row_lock, "advisory": advisory}
throttle = throttles[sys.argv[1] if len(sys.argv) > 1 else "count"]

with transaction() as first:
    first.execute("CREATE TABLE IF NOT EXISTS hits (id serial PRIMARY KEY, subject text, at timestamptz DEFAULT now())")
    first.execute("CREATE TABLE IF NOT EXISTS quotas (subject text PRIMARY KEY, used int NOT NULL)")


class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        subject = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["key"][0]
        try:
            code = 200 if throttle(subject) else 429
        except psycopg2.Error as error:
            print(error, file=sys.stderr)
            code = 500
        self.send_response(code)
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8080))), Service).serve_forever()
