-- $1 policy, $2 tenant.
SELECT coalesce(sum(size), 0)::bigint FROM reserve_files
WHERE policy = $1 AND tenant = $2 AND status = 'AVAILABLE'
