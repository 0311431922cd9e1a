package service

// SetControl has the control repeated after so many runs, until the function that it returns is called.
func SetControl(runs int) (restore func()) {
	was := controlEvery
	controlEvery = runs
	return func() { controlEvery = was }
}

// HasFaketime reports whether clocks can be stopped here.
func HasFaketime() bool { return faketime() != "" }
