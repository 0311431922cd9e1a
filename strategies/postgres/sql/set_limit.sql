UPDATE quota_usage SET max_units = $3 WHERE policy = $1 AND subject = ANY ($2::text[])
