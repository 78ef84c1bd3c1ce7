package main

import (
	"errors"
	"time"

	"gateway/hosts"
)

// A duration is a flag in Go's notation, or in whole seconds.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return "" // no default to show
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "DURATION" }

func (d *duration) Set(text string) error {
	value, err := hosts.ParseDuration(text)
	if err != nil || value < 0 {
		return errors.New("must be a duration, such as 90s or 1m30s, or whole seconds")
	}
	*d = duration(value)
	return nil
}
