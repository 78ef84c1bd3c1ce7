package api

// The routes that stay the same for ever, so that a caller and a daemon that
// share nothing else can still part. RouteStop is answered whatever the protocol.
const (
	RouteHello = "/v1/hello" // GET
	RouteStop  = "/v1/stop"  // POST: Stop, answered with Hello
)

// Stop asks the daemon to end.
type Stop struct {
	// Force: also with sessions open or requests in progress that do something, and without waiting
	// for what runs in them.
	Force bool `json:"force"`
}
