CREATE TABLE quota_usage (
    subject    text   NOT NULL,
    policy     text   NOT NULL,
    used_units bigint NOT NULL DEFAULT 0,
    max_units  bigint NOT NULL,
    PRIMARY KEY (subject, policy)
);
