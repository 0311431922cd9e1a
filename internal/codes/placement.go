package codes

// The modes of a placement on cores.
const (
	PlacedShared = "shared"
	PlacedApart  = "apart"
	PlacedBeside = "beside"
	PlacedGiven  = "given"
)
