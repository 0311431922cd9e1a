INSERT INTO quota_usage (subject, policy, max_units) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
