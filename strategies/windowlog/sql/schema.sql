CREATE TABLE quota_log (
    subject      text   NOT NULL,
    policy       text   NOT NULL,
    -- Of windows that follow each other; 0 where the window rolls.
    window_index bigint NOT NULL,
    -- Nanoseconds since 1970, by the application's clock.
    at_ns        bigint NOT NULL
);
CREATE INDEX ON quota_log (subject, policy, window_index, at_ns);
