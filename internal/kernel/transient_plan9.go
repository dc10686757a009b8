package kernel

// Transient: nothing is measured here that could be measured again.
func Transient(error) bool { return false }
