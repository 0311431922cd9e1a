INSERT INTO quota_log (subject, policy, window_index, at_ns) VALUES ($1, $2, $3, $4)
