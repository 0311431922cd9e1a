SELECT max_units - used_units FROM quota_usage WHERE subject = $1 AND policy = $2 AND window_index = $3
