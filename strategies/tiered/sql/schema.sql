-- The integer widths are the record's: two kinds of use count in 32 bits. The
-- subject is text because workloads name theirs freely.
CREATE TABLE quotas (
    agent_id           text        PRIMARY KEY,
    api_requests_used  integer     NOT NULL DEFAULT 0,
    api_requests_limit integer     NOT NULL DEFAULT 1000,
    tokens_used        bigint      NOT NULL DEFAULT 0,
    tokens_limit       bigint      NOT NULL DEFAULT 500000,
    sandboxes_active   integer     NOT NULL DEFAULT 0,
    sandboxes_limit    integer     NOT NULL DEFAULT 100,
    storage_bytes      bigint      NOT NULL DEFAULT 0,
    storage_limit      bigint      NOT NULL DEFAULT 10737418240,
    last_reset_at      timestamptz NOT NULL DEFAULT now(),
    updated_at         timestamptz NOT NULL DEFAULT now()
);

-- Repeats the primary key, as the record has it: every insert pays for it.
CREATE INDEX idx_quotas_agent_id ON quotas (agent_id);

-- NULL where the agent has no row. The statement is assembled at every call, so
-- that PostgreSQL plans it each time, which is part of what a check costs.
CREATE OR REPLACE FUNCTION check_quota(p_agent_id text, p_quota_type text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    used_column text := CASE p_quota_type
        WHEN 'sandboxes' THEN 'sandboxes_active'
        WHEN 'storage' THEN 'storage_bytes'
        ELSE p_quota_type || '_used'
    END;
    has_room boolean;
BEGIN
    EXECUTE format('SELECT %I < %I FROM quotas WHERE agent_id = $1', used_column, p_quota_type || '_limit')
        INTO has_room USING p_agent_id;
    RETURN has_room;
END
$$;

-- The same with the names that the record's function puts together itself. There
-- is no column sandboxes_used, and no storage_used.
CREATE OR REPLACE FUNCTION check_quota_literal(p_agent_id text, p_quota_type text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    has_room boolean;
BEGIN
    EXECUTE format('SELECT %I < %I FROM quotas WHERE agent_id = $1', p_quota_type || '_used', p_quota_type || '_limit')
        INTO has_room USING p_agent_id;
    RETURN has_room;
END
$$;
