package mcpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// statelessEra is the first protocol whose requests stand by themselves. Earlier
	// clients need a session.
	statelessEra    = "2026-07-28"
	protocolVersion = "Mcp-Protocol-Version"
	// challenge says with what a request that was refused can come in. RFC 9110,
	// section 11.6.1, wants it of a 401.
	challenge = "WWW-Authenticate"

	maxBody = 16 << 20
	// sendTime is how long a client may take to read what it is sent, and to send the
	// next part of what it asks.
	sendTime = 30 * time.Second
	// minToken is what a token must have at least: anybody can try.
	minToken = 16
)

// A Token lets clients in, to the sessions of its scope. Name is what errors
// call it.
type Token struct{ Secret, Scope, Name string }

// Handler serves clients over HTTP, each as its token's scope. The servers that
// it made are returned too, to be closed.
func Handler(config Config, tokens []Token) (http.Handler, []*Server, error) {
	config = config.withDefaults()
	servers := map[string]*Server{}
	var all []*Server
	var sums [][sha256.Size]byte
	for _, t := range tokens {
		if len(t.Secret) < minToken {
			return nil, nil, usage("make one with: openssl rand -hex 32", "%s has less than %d characters", t.Name, minToken)
		}
		sum := sha256.Sum256([]byte(t.Secret))
		for j, other := range sums {
			if other == sum {
				return nil, nil, usage("a token stands for one scope", "%s and %s are the same token", tokens[j].Name, t.Name)
			}
		}
		sums = append(sums, sum)
		servers[t.Scope] = New(config, t.Scope)
		all = append(all, servers[t.Scope])
	}
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		sum, scope := sha256.Sum256([]byte(token)), ""
		for i := range sums { // all of them: how long it takes says nothing
			if subtle.ConstantTimeCompare(sum[:], sums[i][:]) == 1 {
				scope = tokens[i].Scope
			}
		}
		if scope == "" {
			return nil, fmt.Errorf("%w: nobody's token", auth.ErrInvalidToken)
		}
		return &auth.TokenInfo{UserID: scope}, nil
	}
	serverOf := func(r *http.Request) *mcp.Server {
		info := auth.TokenInfoFromContext(r.Context())
		if info == nil {
			return nil
		}
		return servers[info.UserID].mcp
	}
	stateless := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody, Logger: config.Log})
	stateful := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{SessionTimeout: config.Absent, MaxRequestBodyBytes: maxBody, Logger: config.Log})
	byEra := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Del(challenge)
		if r.Header.Get(protocolVersion) >= statelessEra {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	})
	guarded := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(byEra)
	challenging := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(challenge, `Bearer realm="gateway"`) // what is guarded takes it away
		guarded.ServeHTTP(w, r)
	})
	return impatient(sameOrigin(http.NewCrossOriginProtection().Handler(challenging))), all, nil
}

// sameOrigin refuses what a page of another origin has a browser send, whatever
// the method.
func sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" {
			if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
				http.Error(w, "cross-origin request", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// impatient ends the answer to a client that stops reading, and the request of one that
// stops sending: those that have no token may do that, too.
func impatient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // else the server listens already for the client's end
			asked := &asked{r.Body, http.NewResponseController(w)}
			asked.within(sendTime)
			r.Body = asked
		}
		next.ServeHTTP(&patience{w}, r)
	})
}

// asked is the body of a request. Behind its end the connection has no deadline: the
// answer may take its time.
type asked struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (a *asked) Read(b []byte) (int, error) {
	a.within(sendTime)
	n, err := a.ReadCloser.Read(b)
	if err == io.EOF {
		a.within(0)
	}
	return n, err
}

// within bounds what is read next; 0: nothing does.
func (a *asked) within(limit time.Duration) {
	var deadline time.Time
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	_ = a.connection.SetReadDeadline(deadline) // one that has none is no connection
}

type patience struct{ http.ResponseWriter }

func (p *patience) Write(b []byte) (int, error) {
	// One that has no deadline is no connection.
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(sendTime))
	return p.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (p *patience) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Flush is for those who look for an [http.Flusher].
func (p *patience) Flush() {
	_ = http.NewResponseController(p.ResponseWriter).Flush() // the next write fails
}

// Serve serves a handler on a listener until ctx ends.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, BaseContext: func(net.Listener) context.Context { return serving(ctx) },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return context.Cause(ctx)
	}
	return err
}
