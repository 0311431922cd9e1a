UPDATE quota_windows SET used_units = $4, version = version + 1
WHERE subject = $1 AND policy = $2 AND window_index = $3 AND version = $5
