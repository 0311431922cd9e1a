SELECT policy, tenant FROM ledger_tenants ORDER BY policy COLLATE "C", tenant COLLATE "C"
