package phrase

import "regexp"

// Sequences matches what terminals obey: CSI, OSC and the other strings, and
// escapes of two or three bytes (ECMA-48 sections 5.3 to 5.6).
var Sequences = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")
