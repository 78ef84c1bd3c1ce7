//go:build !linux

package transcript_test

import "testing"

func addMounted(map[string]func(*testing.T) disk) {}
