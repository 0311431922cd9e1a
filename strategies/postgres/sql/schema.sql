CREATE TABLE quota_usage (
    subject      text   NOT NULL,
    policy       text   NOT NULL,
    -- The window counted in; 0 where nothing is reset and one row counts for ever.
    window_index bigint NOT NULL,
    used_units   bigint NOT NULL DEFAULT 0,
    max_units    bigint NOT NULL,
    PRIMARY KEY (subject, policy, window_index)
);
