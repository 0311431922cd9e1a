// Throttles that keep their counts in PostgreSQL, behind one service: node postgres.js [count|update|row-lock|advisory]
//
// GET /?key=K answers 200 or 429. LIMIT requests pass, on the PostgreSQL of DATABASE_URL.
const http = require('http');
const { Pool } = require('pg');

const limit = Number(process.env.LIMIT || 1);
const pool = new Pool({ connectionString: process.env.DATABASE_URL });
pool.on('error', (error) => console.error(error)); // an idle connection was lost: another one is opened
const ready = pool.query(`
  CREATE TABLE IF NOT EXISTS hits (id serial PRIMARY KEY, subject text, at timestamptz DEFAULT now());
  CREATE TABLE IF NOT EXISTS quotas (subject text PRIMARY KEY, used int NOT NULL)`);

// hit counts the rows of a subject, and adds one if there is room.
async function hit(client, subject) {
  const { rows } = await client.query('SELECT count(*) FROM hits WHERE subject = $1', [subject]);
  if (Number(rows[0].count) >= limit) return false;
  await client.query('INSERT INTO hits (subject) VALUES ($1)', [subject]);
  return true;
}

const addQuota = (client, subject) =>
  client.query('INSERT INTO quotas VALUES ($1, 0) ON CONFLICT DO NOTHING', [subject]);

async function transaction(work) {
  const client = await pool.connect();
  const lost = () => {};
  client.on('error', lost); // what is under way fails, too
  try {
    await client.query('BEGIN');
    const admitted = await work(client);
    await client.query('COMMIT');
    client.off('error', lost);
    client.release();
    return admitted;
  } catch (error) {
    client.release(error);
    throw error;
  }
}

const throttles = {
  // Two requests that have both counted both add a row.
  count: (subject) => hit(pool, subject),

  // The condition is checked again once the row is free.
  async update(subject) {
    await addQuota(pool, subject);
    const updated = await pool.query(
      'UPDATE quotas SET used = used + 1 WHERE subject = $1 AND used < $2', [subject, limit]);
    return updated.rowCount === 1;
  },

  async 'row-lock'(subject) {
    await addQuota(pool, subject);
    return transaction(async (client) => {
      const { rows } = await client.query('SELECT used FROM quotas WHERE subject = $1 FOR UPDATE', [subject]);
      if (rows[0].used >= limit) return false;
      await client.query('UPDATE quotas SET used = used + 1 WHERE subject = $1', [subject]);
      return true;
    });
  },

  // The lock is given up before COMMIT, and until then nobody else sees the row.
  advisory: (subject) => transaction(async (client) => {
    await client.query('SELECT pg_advisory_lock(hashtext($1))', [subject]);
    const admitted = await hit(client, subject);
    await client.query('SELECT pg_advisory_unlock(hashtext($1))', [subject]);
    return admitted;
  }),
};

const throttle = throttles[process.argv[2] || 'count'];
http.createServer(async (request, response) => {
  try {
    await ready;
    const subject = new URL(request.url, 'http://localhost').searchParams.get('key');
    response.statusCode = await throttle(subject) ? 200 : 429;
  } catch (error) {
    console.error(error);
    response.statusCode = 500;
  }
  response.end();
}).listen(process.env.PORT || 8080, '127.0.0.1');
