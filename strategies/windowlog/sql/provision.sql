WITH granted AS (
    SELECT subject, used FROM unnest($2::text[], $3::bigint[]) AS g (subject, used)
), removed AS (
    DELETE FROM quota_log WHERE policy = $1 AND subject IN (SELECT subject FROM granted)
)
INSERT INTO quota_log (subject, policy, window_index, at_ns)
SELECT subject, $1, $4, $5 FROM granted, generate_series(1, used)
