SELECT check_quota_literal($1, $2)
