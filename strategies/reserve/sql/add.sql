-- $1 policy, $2 tenant, $3 file, $4 size.
INSERT INTO reserve_files (policy, tenant, id, size, status)
VALUES ($1, $2, $3, $4, 'AVAILABLE')
