package daemon_test

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
)

// All times of the API are those of results: UTC, with microseconds.
func TestTimesAreAsOfResults(t *testing.T) {
	c := start(t, daemon.Config{})("")
	opened := open(t, c, api.Open{Name: "work"})
	var said bytes.Buffer
	note := func(v any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		must(t, json.NewEncoder(&said).Encode(v))
	}
	note(opened, nil)
	err := c.Exec(t.Context(), "work", api.Run{Text: "echo hi"}, func(e api.Event) error {
		note(e, nil)
		return nil
	})
	note(nil, err)
	s, err := c.Session(t.Context(), "work")
	note(s, err)
	command, err := c.Command(t.Context(), s.Command.ID, 0)
	note(command, err)
	o, err := c.Output(t.Context(), "work", api.Query{})
	note(o, err)
	closed, err := c.Close(t.Context(), "work")
	note(closed, err)
	list, err := c.Sessions(t.Context(), true)
	note(list, err)
	events := 0
	_ = c.Events(t.Context(), 0, func(e api.Event) error { // ends with the last one
		note(e, nil)
		if events++; e.Event == "closed" {
			return errEnough
		}
		return nil
	})
	times := regexp.MustCompile(`"([a-z_]*)":"([0-9]{4}-[^"]*)"`).FindAllSubmatch(said.Bytes(), -1)
	if len(times) < 20 || events < 3 {
		t.Fatalf("%d times, %d events", len(times), events)
	}
	right := regexp.MustCompile(`^[-0-9]{10}T[0-9:]{8}(\.[0-9]{1,6})?Z$`)
	for _, found := range times {
		if !right.Match(found[2]) {
			t.Errorf("%s is %s", found[1], found[2])
		}
	}
}

// A time that is longer than anybody waits is not a short one: some ask for the largest
// number there is.
func TestLongTimes(t *testing.T) {
	c := start(t, daemon.Config{})("")
	open(t, c, api.Open{Name: "work"})
	for _, ms := range []int64{math.MaxInt64, math.MaxInt64 / 2, 1<<64/1_000_000 + 1} {
		var long api.Duration
		must(t, json.Unmarshal([]byte(strconv.FormatInt(ms, 10)), &long))
		r, err := c.Run(t.Context(), "work", api.Run{Text: "sleep 0.05", Timeout: long, Wait: api.Duration(time.Minute)})
		if err != nil || r.State != "exited" {
			t.Errorf("with a timeout of %d ms: %+v, %v", ms, r, err)
		}
	}
}
