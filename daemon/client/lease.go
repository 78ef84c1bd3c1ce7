package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gateway/daemon/api"
)

// A lease is a connection to the daemon over which one program can be started.
type lease struct {
	conn    *net.UnixConn
	lines   *json.Decoder
	account string
}

// leaseTimeout bounds the wait for a daemon that is stuck. It looks one thing
// up.
const leaseTimeout = 2 * time.Second

func (t *Transport) lease(ctx context.Context) (*lease, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	dialled, err := t.dial(ctx)
	if err != nil {
		return nil, unreachable(err)
	}
	conn, ok := dialled.(*net.UnixConn)
	if !ok {
		dialled.Close()
		return nil, unreachable(fmt.Errorf("no descriptor goes over %T", dialled))
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	l, err := t.upgrade(ctx, conn)
	if !stop() {
		err = unreachable(fmt.Errorf("no answer: %w", context.Cause(ctx)))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return l, nil
}

// upgrade asks for the lease.
func (t *Transport) upgrade(ctx context.Context, conn *net.UnixConn) (*lease, error) {
	body, err := json.Marshal(t.asking)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway/v1/lend", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", api.LendProtocol)
	request.Header.Set(api.ProtocolHeader, strconv.Itoa(api.Protocol))
	if err := request.Write(conn); err != nil {
		return nil, unreachable(err)
	}
	buffer := bufio.NewReader(conn)
	response, err := http.ReadResponse(buffer, request)
	if err != nil {
		return nil, unreachable(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		account, err := url.PathUnescape(response.Header.Get(api.AccountHeader))
		if err != nil {
			return nil, unreachable(err)
		}
		return &lease{conn, json.NewDecoder(buffer), account}, nil
	}
	return nil, refusal(response, conn.RemoteAddr().String())
}
