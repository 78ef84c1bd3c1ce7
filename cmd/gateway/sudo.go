package main

// sudoFlag is --sudo[=USER].
type sudoFlag struct {
	set  bool
	user string
}

// sudoDefault is what --sudo alone stands for.
const sudoDefault = "default"

func (f *sudoFlag) String() string { return f.user }
func (f *sudoFlag) Type() string   { return "USER" }

func (f *sudoFlag) Set(s string) error {
	f.set, f.user = true, s
	if s == sudoDefault {
		f.user = ""
	}
	return nil
}
