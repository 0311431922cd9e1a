-- $1 policy, $2 tenant, $3 the number of a change.
SELECT id, size, stored, ended FROM ledger_files
WHERE policy = $1 AND tenant = $2 AND (stored > $3 OR ended > $3)
