-- $1 policy, $2 tenants.
DELETE FROM ledger_files WHERE policy = $1 AND tenant = ANY($2::text[])
