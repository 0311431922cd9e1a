SELECT escrow_return(agent, policy, span, $1, draws, units) FROM (
    SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) AS r (agent, policy, span, draws, units)
    ORDER BY agent, policy, span
) AS r
