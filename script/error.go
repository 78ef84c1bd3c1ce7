package script

import "gateway/internal/document"

// Error is what is wrong with a script. Its code is script.invalid.
type Error = document.Error

const codeInvalid = "script.invalid"
