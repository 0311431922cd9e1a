package service

import "time"

// SetControl has the control repeated after so many runs, until the function that it returns is called.
func SetControl(runs int) (restore func()) {
	was := controlEvery
	controlEvery = runs
	return func() { controlEvery = was }
}

// SetSets has further sets of instances run from so many runs on, until the function that it returns is called.
func SetSets(from int64) (restore func()) {
	was := setsFrom
	setsFrom = from
	return func() { setsFrom = was }
}

// SetQuiet has a client taken to wait for another one after so much time, until the function that it returns is called.
func SetQuiet(d time.Duration) (restore func()) {
	was := quiet
	quiet = d
	return func() { quiet = was }
}
