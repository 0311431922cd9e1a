INSERT INTO quota_windows (subject, policy, window_index) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
