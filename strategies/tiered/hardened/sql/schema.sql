-- Limits of agents that differ from their policy's.
CREATE TABLE escrow_limits (
    agent  text   NOT NULL,
    policy text   NOT NULL,
    units  bigint NOT NULL,
    PRIMARY KEY (agent, policy)
);

-- What has been drawn in each window: never less than what was admitted.
CREATE TABLE escrow_usage (
    agent  text   NOT NULL,
    policy text   NOT NULL,
    span   bigint NOT NULL,
    drawn  bigint NOT NULL,
    ends   timestamptz,
    -- Regions that may hold credit, each with the number of its draws.
    holders  jsonb   NOT NULL DEFAULT '{}',
    -- Regions are asked to return what they hold.
    recalled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (agent, policy, span)
);
CREATE INDEX escrow_usage_ends ON escrow_usage (ends);
CREATE INDEX escrow_usage_recalled ON escrow_usage (policy) WHERE recalled;

-- Regions that have a Redis of their own.
CREATE TABLE escrow_regions (region text PRIMARY KEY);

-- What requests hold that were settled: each of them once, however often it is told.
CREATE TABLE escrow_settled (
    agent   text    NOT NULL,
    policy  text    NOT NULL,
    span    bigint  NOT NULL,
    request bigint  NOT NULL,
    held    bigint  NOT NULL,
    closed  boolean NOT NULL,
    ends    timestamptz,
    PRIMARY KEY (agent, policy, span, request)
);
CREATE INDEX escrow_settled_ends ON escrow_settled (ends);

-- Charges up to p_units, or all of them or none, and says how many, and how many
-- units are left. An account with nothing left is neither locked nor written.
--
-- Where several regions hold credit, the last p_near units are given out as they are
-- asked for: up to p_batch, or none where p_least are not there. Regions are asked to
-- return what they hold, once.
CREATE FUNCTION escrow_draw(
    p_agent text, p_policy text, p_span bigint, p_units bigint, p_whole boolean, p_limit bigint, p_ends timestamptz,
    p_region text, p_least bigint, p_batch bigint, p_near bigint,
    OUT granted bigint, OUT room bigint, OUT several boolean
) LANGUAGE plpgsql AS $$
DECLARE
    v_limit bigint;
    v_row   escrow_usage;
BEGIN
    granted := 0;
    room := 0;
    several := p_region <> '' AND EXISTS (SELECT FROM escrow_regions WHERE region <> p_region);
    SELECT units INTO v_limit FROM escrow_limits WHERE agent = p_agent AND policy = p_policy;
    v_limit := coalesce(v_limit, p_limit);
    SELECT * INTO v_row FROM escrow_usage WHERE agent = p_agent AND policy = p_policy AND span = p_span;
    IF v_row.drawn >= v_limit THEN
        IF several AND NOT v_row.recalled AND v_row.holders <> '{}' THEN
            UPDATE escrow_usage SET recalled = true WHERE agent = p_agent AND policy = p_policy AND span = p_span;
        END IF;
        RETURN;
    END IF;
    IF v_row.drawn IS NULL THEN
        INSERT INTO escrow_usage VALUES (p_agent, p_policy, p_span, 0, p_ends) ON CONFLICT DO NOTHING;
    END IF;
    SELECT * INTO v_row FROM escrow_usage WHERE agent = p_agent AND policy = p_policy AND span = p_span FOR UPDATE;
    room := greatest(v_limit - v_row.drawn, 0);
    IF several AND NOT p_whole AND room <= p_near THEN
        p_units := p_batch;
        p_whole := room < p_least;
    END IF;
    IF NOT (room = 0 OR p_whole AND room < p_units) THEN
        granted := least(room, p_units);
        room := room - granted;
        IF p_region <> '' AND NOT p_whole THEN
            v_row.holders := v_row.holders || jsonb_build_object(p_region, coalesce((v_row.holders ->> p_region)::bigint, 0) + 1);
        END IF;
    END IF;
    v_row.recalled := v_row.recalled OR several AND room <= p_near AND v_row.holders - p_region <> '{}';
    IF granted > 0 THEN
        UPDATE escrow_usage SET drawn = drawn + granted, holders = v_row.holders, recalled = v_row.recalled
            WHERE agent = p_agent AND policy = p_policy AND span = p_span;
    END IF;
END
$$;

-- Takes back what a region held after so many draws. It holds nothing more, unless it
-- has drawn since then.
CREATE FUNCTION escrow_return(
    p_agent text, p_policy text, p_span bigint, p_region text, p_draws bigint, p_units bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_holders jsonb;
BEGIN
    SELECT holders INTO v_holders FROM escrow_usage
        WHERE agent = p_agent AND policy = p_policy AND span = p_span AND jsonb_exists(holders, p_region) FOR UPDATE;
    IF NOT FOUND THEN -- it was set anew in between
        RETURN;
    END IF;
    IF (v_holders ->> p_region)::bigint = p_draws THEN
        v_holders := v_holders - p_region;
    END IF;
    UPDATE escrow_usage SET drawn = greatest(drawn - p_units, 0), holders = v_holders, recalled = v_holders <> '{}'
        WHERE agent = p_agent AND policy = p_policy AND span = p_span;
END
$$;

-- Sets what a request holds. One that is closed holds nothing any more, and stays so.
CREATE FUNCTION escrow_settle(
    p_agent text, p_policy text, p_span bigint, p_request bigint, p_taken bigint, p_held bigint, p_close boolean, p_ends timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_before escrow_settled;
BEGIN
    INSERT INTO escrow_settled VALUES (p_agent, p_policy, p_span, p_request, p_taken, false, p_ends) ON CONFLICT DO NOTHING;
    SELECT * INTO v_before FROM escrow_settled
        WHERE agent = p_agent AND policy = p_policy AND span = p_span AND request = p_request FOR UPDATE;
    IF v_before.closed THEN
        RETURN;
    END IF;
    UPDATE escrow_settled SET held = p_held, closed = p_close, ends = p_ends
        WHERE agent = p_agent AND policy = p_policy AND span = p_span AND request = p_request;
    UPDATE escrow_usage SET drawn = greatest(drawn + p_held - v_before.held, 0)
        WHERE agent = p_agent AND policy = p_policy AND span = p_span;
END
$$;
