UPDATE quota_usage SET used_units = used_units + $4 WHERE subject = $1 AND policy = $2 AND window_index = $3
