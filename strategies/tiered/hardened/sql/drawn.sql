SELECT drawn FROM escrow_usage WHERE agent = $1 AND policy = $2 AND span = $3
