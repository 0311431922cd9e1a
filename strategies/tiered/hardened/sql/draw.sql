SELECT granted, room FROM escrow_draw($1, $2, $3, $4, $5, $6, $7)
