package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// sudoFlag is --sudo[=USER].
type sudoFlag struct {
	set  bool
	user string
}

// sudoAlone is what --sudo without a name is to pflag: what no argument can
// hold, and so no name.
const sudoAlone = "\x00"

// add adds the flag.
func (f *sudoFlag) add(flags *pflag.FlagSet, about string) {
	flags.VarPF(f, "sudo", "", about).NoOptDefVal = sudoAlone
}

func (f *sudoFlag) String() string { return f.user }
func (f *sudoFlag) Type() string   { return "" } // its placeholder is NoOptDefVal

func (f *sudoFlag) Set(s string) error {
	switch s {
	case "": // a variable that is not set; the default may be root
		return errors.New("it names nobody")
	case sudoAlone:
		s = ""
	}
	f.set, f.user = true, s
	return nil
}
