package conformance

// Open says what is known to go wrong with a case in a shell, or nothing. Such
// a case runs, and the matrix shows it; it does not fail the tests, and no case
// is here because of what a shell can't do.
func Open(id, shell string) string {
	for _, o := range unsolved {
		if o.id == id && (o.shell == "" || o.shell == shell) {
			return o.what
		}
	}
	return ""
}

var unsolved = []struct {
	id, shell string // no shell: all of them
	what      string
}{
	{"D13", "ksh", "children that end while it leaves an interrupted pipeline may cost it its prompt, and it is ended; without a terminal a group may end with status 2"},
}
