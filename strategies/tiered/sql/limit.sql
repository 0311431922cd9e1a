SELECT {limit}::bigint FROM quotas WHERE agent_id = $1
