package stores

// ProcessIdentity is what a child is recorded with.
func ProcessIdentity(pid int) (string, error) { return processIdentity(pid) }
