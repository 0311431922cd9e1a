SELECT check_quota($1, $2)
