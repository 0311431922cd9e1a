CREATE TABLE reserve_tenants (
    policy text NOT NULL,
    tenant text NOT NULL,
    PRIMARY KEY (policy, tenant)
);

CREATE TABLE reserve_files (
    policy text   NOT NULL,
    tenant text   NOT NULL,
    id     text   NOT NULL,
    size   bigint NOT NULL,
    status text   NOT NULL,
    PRIMARY KEY (policy, tenant, id)
);
