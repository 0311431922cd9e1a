INSERT INTO quota_windows (subject, policy, window_index, used_units)
SELECT subject, $1, $2, used FROM unnest($3::text[], $4::bigint[]) AS g (subject, used)
ON CONFLICT (subject, policy, window_index) DO UPDATE SET used_units = excluded.used_units, version = quota_windows.version + 1
