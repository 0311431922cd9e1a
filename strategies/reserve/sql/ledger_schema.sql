CREATE TABLE ledger_tenants (
    policy   text   NOT NULL,
    tenant   text   NOT NULL,
    quota    bigint NOT NULL,
    revision bigint NOT NULL,
    stored   bigint NOT NULL,
    deleted  bigint NOT NULL,
    version  bigint NOT NULL,
    PRIMARY KEY (policy, tenant)
);

-- The numbers of the tenant's changes that stored and that deleted a file, 0 for
-- none. One that was given up has neither.
CREATE TABLE ledger_files (
    policy text   NOT NULL,
    tenant text   NOT NULL,
    id     text   NOT NULL,
    size   bigint NOT NULL,
    stored bigint NOT NULL,
    ended  bigint NOT NULL,
    PRIMARY KEY (policy, tenant, id)
);

CREATE INDEX ON ledger_files (policy, tenant, stored);
CREATE INDEX ON ledger_files (policy, tenant, ended);

-- The functions lock the tenant's row first. That makes the changes of a tenant
-- visible in the order of their numbers, and repeating one harmless.

CREATE FUNCTION ledger_keep(in_policy text, in_tenant text, in_id text, in_size bigint)
RETURNS SETOF ledger_files LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    PERFORM FROM ledger_tenants t WHERE t.policy = in_policy AND t.tenant = in_tenant FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM FROM ledger_files f WHERE f.policy = in_policy AND f.tenant = in_tenant AND f.id = in_id;
    IF NOT FOUND THEN
        UPDATE ledger_tenants t SET version = t.version + 1, stored = t.stored + in_size
        WHERE t.policy = in_policy AND t.tenant = in_tenant RETURNING t.version INTO number;
        INSERT INTO ledger_files VALUES (in_policy, in_tenant, in_id, in_size, number, 0);
    END IF;
    RETURN QUERY SELECT * FROM ledger_files f WHERE f.policy = in_policy AND f.tenant = in_tenant AND f.id = in_id;
END $$;

CREATE FUNCTION ledger_drop(in_policy text, in_tenant text, in_id text)
RETURNS SETOF ledger_files LANGUAGE plpgsql AS $$
DECLARE
    found_file ledger_files;
    number bigint;
BEGIN
    PERFORM FROM ledger_tenants t WHERE t.policy = in_policy AND t.tenant = in_tenant FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO found_file FROM ledger_files f WHERE f.policy = in_policy AND f.tenant = in_tenant AND f.id = in_id;
    IF NOT FOUND THEN
        INSERT INTO ledger_files VALUES (in_policy, in_tenant, in_id, 0, 0, 0);
    ELSIF found_file.stored > 0 AND found_file.ended = 0 THEN
        UPDATE ledger_tenants t SET version = t.version + 1, deleted = t.deleted + found_file.size
        WHERE t.policy = in_policy AND t.tenant = in_tenant RETURNING t.version INTO number;
        UPDATE ledger_files f SET ended = number WHERE f.policy = in_policy AND f.tenant = in_tenant AND f.id = in_id;
    END IF;
    RETURN QUERY SELECT * FROM ledger_files f WHERE f.policy = in_policy AND f.tenant = in_tenant AND f.id = in_id;
END $$;

CREATE FUNCTION ledger_give_up(in_policy text, in_tenant text, in_ids text[])
RETURNS SETOF ledger_files LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM ledger_tenants t WHERE t.policy = in_policy AND t.tenant = in_tenant FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO ledger_files SELECT in_policy, in_tenant, id, 0, 0, 0 FROM unnest(in_ids) AS g (id)
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM ledger_files f WHERE f.policy = in_policy AND f.tenant = in_tenant AND f.id = ANY (in_ids);
END $$;
