-- $1 policy, $2 tenant.
SELECT quota, revision, stored, deleted, version FROM ledger_tenants WHERE policy = $1 AND tenant = $2
