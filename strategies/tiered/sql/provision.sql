INSERT INTO quotas (agent_id, {used}, {limit})
SELECT agent_id, used, max FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS g (agent_id, used, max)
ON CONFLICT (agent_id) DO UPDATE SET {used} = excluded.{used}, {limit} = excluded.{limit}
