SELECT agent, policy, span, (holders ->> $1)::bigint FROM escrow_usage
WHERE recalled AND jsonb_exists(holders, $1) LIMIT $2
