-- Rows are locked in the order of agents, in which write-backs lock them too: the
-- two would wait for each other otherwise.
WITH locked AS (SELECT agent_id FROM quotas ORDER BY agent_id COLLATE "C" FOR UPDATE)
UPDATE quotas SET {used} = 0, last_reset_at = now()
FROM locked WHERE quotas.agent_id = locked.agent_id
RETURNING quotas.agent_id
