INSERT INTO quota_usage (subject, policy, window_index, max_units) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
