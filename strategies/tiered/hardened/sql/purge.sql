WITH usage AS (DELETE FROM escrow_usage WHERE ends < $1 RETURNING 1),
settled AS (DELETE FROM escrow_settled WHERE ends < $1 RETURNING 1)
SELECT (SELECT count(*) FROM usage) + (SELECT count(*) FROM settled)
