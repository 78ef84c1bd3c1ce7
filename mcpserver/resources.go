package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/api"
	"gateway/gateway"
)

const (
	hostURI       = "gateway://hosts/"
	sessionURI    = "gateway://sessions/"
	transcriptURI = "/transcript"
)

// addResources adds a resource for each host and each session. Which ones there
// are is found out when somebody asks.
func (s *Server) addResources() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: hostURI + "{name}", Name: "host", Title: "A host", MIMEType: "application/json",
		Description: "What is known of a host: name, transport, address, groups, tags",
	}, s.readHost)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: sessionURI + "{session}" + transcriptURI, Name: "transcript", Title: "A session's transcript", MIMEType: "text/plain",
		Description: "The end of what the commands of a session have written; the tool output reads all of it",
	}, s.readTranscript)
}

// listResources adds the hosts and sessions of the moment to the last page.
func (s *Server) listResources(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	result, err := next(ctx, "resources/list", req)
	list, ok := result.(*mcp.ListResourcesResult)
	if err != nil || !ok || list.NextCursor != "" {
		return result, err
	}
	for _, name := range s.names {
		list.Resources = append(list.Resources, &mcp.Resource{URI: hostURI + name, Name: "host " + name, MIMEType: "application/json"})
	}
	for _, one := range s.visibleSessions(ctx) {
		list.Resources = append(list.Resources, &mcp.Resource{
			URI: sessionURI + one.ID + transcriptURI, Name: "transcript of " + one.Name, MIMEType: "text/plain",
			Description: fmt.Sprintf("session %s on %s, %s", one.Name, one.Host, one.State), Size: one.To - one.From,
		})
	}
	return list, nil
}

// visibleSessions are none where there is no daemon to tell of them: the hosts
// are there without it.
func (s *Server) visibleSessions(ctx context.Context) []api.Session {
	sessions, err := (&call{Server: s, ctx: ctx}).visible()
	if err != nil {
		s.config.Log.Info("resources", "error", err)
	}
	return sessions
}

func (s *Server) readHost(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	h, ok := s.allowed[strings.TrimPrefix(req.Params.URI, hostURI)]
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	entry, err := s.hostEntry(ctx, h)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(entry)
	return contents(req, "application/json", string(text)), err
}

// transcriptBytes is how much of a transcript a resource shows.
const transcriptBytes = 64 << 10

func (s *Server) readTranscript(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, sessionURI), transcriptURI)
	c := &call{Server: s, ctx: ctx}
	session, err := c.find(name)
	switch {
	case gateway.Code(err) == "session.not_found":
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	case err != nil: // nobody has said that it is not there
		return nil, err
	}
	o, err := s.daemon.Output(ctx, session.ID, api.Query{Tail: transcriptBytes, Max: transcriptBytes})
	if err != nil {
		return nil, err
	}
	tail := o.Pieces
	if o.Omitted > 0 {
		_, tail = split(o)
	}
	text, rest, _ := clean(whole(joined(tail)))
	text += unfinished(rest)
	if o.Omitted > 0 {
		text = fmt.Sprintf("[... %d bytes before this; the tool output reads them ...]\n", o.Omitted) + text
	}
	return contents(req, "text/plain", text), nil
}

func contents(req *mcp.ReadResourceRequest, kind, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: kind, Text: text}}}
}
