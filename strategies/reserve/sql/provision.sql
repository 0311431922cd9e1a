-- $1 policy, $2 tenants, $3 units that each has stored, $4 the file that they are in.
WITH granted AS (
    SELECT * FROM unnest($2::text[], $3::bigint[]) AS g (tenant, used)
), known AS (
    INSERT INTO reserve_tenants (policy, tenant)
    SELECT $1, tenant FROM granted
    ON CONFLICT DO NOTHING
)
INSERT INTO reserve_files (policy, tenant, id, size, status)
SELECT $1, tenant, $4, used, 'AVAILABLE' FROM granted WHERE used > 0
