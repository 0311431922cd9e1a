UPDATE quotas SET {used} = $2 WHERE agent_id = $1
