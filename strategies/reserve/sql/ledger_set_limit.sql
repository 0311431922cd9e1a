UPDATE ledger_tenants SET quota = $3, revision = revision + 1 WHERE policy = $1 AND tenant = ANY ($2::text[])
RETURNING tenant, quota, revision, stored, deleted, version
