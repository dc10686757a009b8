//go:build !linux

package journal

import "testing"

func special(*testing.T, string) map[string]string { return nil }

func descriptors(*testing.T) []string { return nil }
