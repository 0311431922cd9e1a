-- $1 policy, $2 tenants, $3 limits, $4 units that each has stored, $5 the file that they are in.
WITH granted AS (
    SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS g (tenant, quota, used)
), filed AS (
    INSERT INTO ledger_files
    SELECT $1, tenant, $5, used, 1, 0 FROM granted WHERE used > 0
)
INSERT INTO ledger_tenants AS t
SELECT $1, tenant, quota, 1, used, 0, CASE WHEN used > 0 THEN 1 ELSE 0 END FROM granted
ON CONFLICT (policy, tenant) DO UPDATE
SET quota = EXCLUDED.quota, revision = t.revision + 1, stored = EXCLUDED.stored, deleted = 0, version = EXCLUDED.version
RETURNING tenant, quota, revision, stored, deleted, version
