INSERT INTO quota_usage (subject, policy, used_units, max_units)
SELECT subject, $1, used, max FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS g (subject, used, max)
ON CONFLICT (subject, policy) DO UPDATE SET used_units = excluded.used_units, max_units = excluded.max_units
