WITH given AS (
    SELECT * FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS g (agent, units, used)
), limits AS (
    INSERT INTO escrow_limits (agent, policy, units) SELECT agent, $1, units FROM given
    ON CONFLICT (agent, policy) DO UPDATE SET units = excluded.units
)
INSERT INTO escrow_usage (agent, policy, span, drawn, ends) SELECT agent, $1, $2, used, $6 FROM given
ON CONFLICT (agent, policy, span) DO UPDATE SET drawn = excluded.drawn, holders = '{}', recalled = false
