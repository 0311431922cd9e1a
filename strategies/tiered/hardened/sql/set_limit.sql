INSERT INTO escrow_limits (agent, policy, units) SELECT agent, $1, $3 FROM unnest($2::text[]) AS g (agent)
ON CONFLICT (agent, policy) DO UPDATE SET units = excluded.units
