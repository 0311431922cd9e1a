SELECT {used}::bigint FROM quotas WHERE agent_id = $1
