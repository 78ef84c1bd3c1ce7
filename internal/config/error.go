package config

import "gateway/internal/document"

// Error is what is wrong with a setting.
type Error = document.Error

// CodeInvalid is the code of every [Error].
const CodeInvalid = "config.invalid"
