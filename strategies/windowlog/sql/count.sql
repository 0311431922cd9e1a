SELECT count(*) FROM quota_log WHERE subject = $1 AND policy = $2 AND window_index = $3 AND at_ns > $4
