CREATE TABLE quota_windows (
    subject      text   NOT NULL,
    policy       text   NOT NULL,
    window_index bigint NOT NULL,
    used_units   bigint NOT NULL DEFAULT 0,
    -- Of pg-optimistic; the others leave it alone.
    version      bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (subject, policy, window_index)
);
