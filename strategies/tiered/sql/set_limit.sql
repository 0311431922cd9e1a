UPDATE quotas SET {limit} = $2 WHERE agent_id = ANY ($1::text[])
