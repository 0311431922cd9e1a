UPDATE quotas SET {used} = {used} + $2 WHERE agent_id = $1 RETURNING {used}::bigint
