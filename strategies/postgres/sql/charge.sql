UPDATE quota_usage SET used_units = used_units + $3 WHERE subject = $1 AND policy = $2
