//go:build !linux && !darwin

package kernel

import "time"

// Watch is not to be had here: NewWatch refuses first.
type Watch struct{}

// NewWatch refuses.
func NewWatch() (*Watch, error) { return nil, ErrNoWatch }

// File refuses.
func (*Watch) File(File) error { return ErrNoWatch }

// Process refuses.
func (*Watch) Process(int, string) (bool, error) { return false, ErrNoWatch }

// Wait refuses.
func (*Watch) Wait(time.Time) (Event, error) { return Event{}, ErrNoWatch }

// Wake does nothing.
func (*Watch) Wake() {}

// Close does nothing.
func (*Watch) Close() {}
