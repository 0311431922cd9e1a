INSERT INTO quota_usage (subject, policy, window_index, used_units, max_units)
SELECT subject, $1, $2, used, max FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS g (subject, used, max)
ON CONFLICT (subject, policy, window_index) DO UPDATE SET used_units = excluded.used_units, max_units = excluded.max_units
