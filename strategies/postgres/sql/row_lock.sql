SELECT used_units FROM quota_windows WHERE subject = $1 AND policy = $2 AND window_index = $3 FOR UPDATE
