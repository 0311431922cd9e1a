SELECT used_units FROM quota_usage WHERE subject = $1 AND policy = $2
