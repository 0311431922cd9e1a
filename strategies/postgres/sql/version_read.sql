SELECT used_units, version FROM quota_windows WHERE subject = $1 AND policy = $2 AND window_index = $3
