package client

import "errors"

func markAll() error { return errors.ErrUnsupported }
