SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || $2 || ' ' || $1, 0))
