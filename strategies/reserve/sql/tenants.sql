SELECT policy, tenant FROM reserve_tenants ORDER BY policy COLLATE "C", tenant COLLATE "C"
