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
    PRIMARY KEY (agent, policy, span)
);
CREATE INDEX escrow_usage_ends ON escrow_usage (ends);

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
CREATE FUNCTION escrow_draw(
    p_agent text, p_policy text, p_span bigint, p_units bigint, p_whole boolean, p_limit bigint, p_ends timestamptz,
    OUT granted bigint, OUT room bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_limit bigint;
    v_drawn bigint;
BEGIN
    granted := 0;
    room := 0;
    SELECT units INTO v_limit FROM escrow_limits WHERE agent = p_agent AND policy = p_policy;
    v_limit := coalesce(v_limit, p_limit);
    SELECT drawn INTO v_drawn FROM escrow_usage WHERE agent = p_agent AND policy = p_policy AND span = p_span;
    IF v_drawn >= v_limit THEN
        RETURN;
    END IF;
    IF v_drawn IS NULL THEN
        INSERT INTO escrow_usage VALUES (p_agent, p_policy, p_span, 0, p_ends) ON CONFLICT DO NOTHING;
    END IF;
    SELECT drawn INTO v_drawn FROM escrow_usage WHERE agent = p_agent AND policy = p_policy AND span = p_span FOR UPDATE;
    room := greatest(v_limit - v_drawn, 0);
    IF room = 0 OR p_whole AND room < p_units THEN
        RETURN;
    END IF;
    granted := least(room, p_units);
    room := room - granted;
    UPDATE escrow_usage SET drawn = drawn + granted WHERE agent = p_agent AND policy = p_policy AND span = p_span;
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
