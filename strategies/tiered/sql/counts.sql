SELECT agent_id, {limit}::bigint, {used}::bigint FROM quotas ORDER BY agent_id COLLATE "C"
