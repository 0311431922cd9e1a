-- $1 policy, $2 tenant, $3 file.
UPDATE reserve_files SET status = 'DELETED'
WHERE policy = $1 AND tenant = $2 AND id = $3 AND status = 'AVAILABLE'
RETURNING size
