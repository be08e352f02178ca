package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

const (
	// How long an answer may take before it counts as failed.
	answerTimeout  = 30 * time.Second
	streamedEvents = 50
	// Turns after which a chain of responses begins again at its first one, so that histories keep about their length.
	chainTurns = 10
	// Where a body names the response that it continues.
	continuedMember = "previous_response_id"
)

// What OpenAI's SDK for Python sends: an ext_proc message carries each of its headers.
const sdkHeaders = "host: bench\r\n" +
	"accept-encoding: gzip, deflate\r\n" +
	"connection: keep-alive\r\n" +
	"authorization: Bearer bench\r\n" +
	"accept: application/json\r\n" +
	"content-type: application/json\r\n" +
	"user-agent: OpenAI/Python 3.54.0\r\n" +
	"x-stainless-lang: python\r\n" +
	"x-stainless-package-version: 3.54.0\r\n" +
	"x-stainless-os: Linux\r\n" +
	"x-stainless-arch: x64\r\n" +
	"x-stainless-runtime: CPython\r\n" +
	"x-stainless-runtime-version: 3.11.7\r\n" +
	"x-stainless-async: false\r\n" +
	"x-stainless-retry-count: 0\r\n" +
	"x-stainless-read-timeout: 600\r\n"

// client is one connection. It writes a request in one piece and reads the answer with as little work as telling its end takes.
type client struct {
	plan
	connection net.Conn
	reader     *bufio.Reader
	request    []byte
	// Where in the request the session id stands.
	idAt   int
	nextID int
	// Of a chain of responses: turns since its first one, and the id of the last answer.
	turns    int
	answered []byte
}

func newClient(p plan, number int) *client {
	id, idHeader, idMember := "", "", ""
	if len(p.IDs) > 0 {
		id = p.IDs[0]
		if member, isMember := strings.CutPrefix(p.IDIn, "body."); isMember {
			idMember = fmt.Sprintf(`,"%s":"%s"`, member, id)
		} else {
			idHeader = fmt.Sprintf("%s: %s\r\n", p.IDIn, id)
		}
	}
	body := chatBody(p.BodyBytes, p.Stream, idMember)
	path, ttl := "/v1/chat/completions", ""
	if p.continues() {
		path, idHeader = "/v1/responses", ""
		body = []byte(fmt.Sprintf(`{"model":"bench","max_output_tokens":16,"input":"%s","%s":"%s"}`,
			strings.Repeat("The quick brown fox jumps over the lazy dog. ", 5), continuedMember, id))
	}
	if p.CreateTTL > 0 {
		path, ttl = "/v1/context", fmt.Sprintf("x-session-ttl: %d\r\n", p.CreateTTL)
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\n%s%s%scontent-length: %d\r\n\r\n", path, sdkHeaders, ttl, idHeader, len(body))
	c := &client{plan: p, request: append([]byte(head), body...)}
	c.idAt = bytes.Index(c.request, []byte(id))
	// Every connection goes round its own part of the sessions.
	c.nextID = number * len(p.IDs) / p.Connections
	// Connected before the clock starts; a failure is that of the first request, which tries again.
	_ = c.connect()
	return c
}

func (p plan) continues() bool { return p.IDIn == continuedMember }

// chatBody is a chat request of exactly this length, with more members at its end.
func chatBody(length int, stream bool, more string) []byte {
	head := `{"model":"bench","max_tokens":16,"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"`
	if stream {
		head = `{"stream":true,` + head[1:]
	}
	tail := `"}]` + more + "}"
	text := strings.Repeat("The quick brown fox \\\"jumps\\\" over the lazy dog.\\n", length/40+1)
	filler := text[:max(0, length-len(head)-len(tail))]
	// Not in the middle of an escape.
	cut := strings.TrimRight(filler, "\\")
	return []byte(head + cut + strings.Repeat(" ", len(filler)-len(cut)) + tail)
}

func (c *client) close() {
	if c.connection != nil {
		c.connection.Close()
		c.connection = nil
	}
}

func (c *client) connect() error {
	if c.connection != nil {
		return nil
	}
	connection, err := net.DialTimeout("tcp", c.Target, answerTimeout)
	if err == nil {
		c.connection, c.reader = connection, bufio.NewReaderSize(connection, 16<<10)
	}
	return err
}

// exchange sends one request and reads its answer. Returns the times between its events, if it is streamed.
func (c *client) exchange() ([]time.Duration, error) {
	if err := c.connect(); err != nil {
		return nil, err
	}
	if c.continues() && c.turns > 0 && c.turns < chainTurns {
		copy(c.request[c.idAt:], c.answered)
	} else if len(c.IDs) > 0 {
		copy(c.request[c.idAt:], c.IDs[c.nextID])
		c.nextID = (c.nextID + 1) % len(c.IDs)
		c.turns = 0
	}
	c.turns++
	if err := c.connection.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.connection.Write(c.request); err != nil {
		return nil, err
	}
	return c.readAnswer()
}

func (c *client) readAnswer() ([]time.Duration, error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		status := strings.TrimSpace(string(line))
		rest, _ := c.reader.Peek(min(c.reader.Buffered(), 400))
		return nil, fmt.Errorf("%s: %s", status, rest)
	}
	length, isChunked, hasSession := 0, false, false
	for {
		line, err = c.reader.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(": "))
		if len(name) == 0 {
			break
		}
		// Envoy writes names in lower case.
		switch string(name) {
		case "content-length":
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
		case "transfer-encoding":
			isChunked = true
		case "x-session-id":
			hasSession = true
		}
	}
	if (len(c.IDs) > 0 || c.CreateTTL > 0) && !hasSession {
		return nil, errors.New("an answer without x-session-id: the request bypassed the gateway")
	}
	if c.continues() {
		return nil, c.readResponseID(length, isChunked)
	}
	if isChunked {
		return c.readEvents()
	}
	if c.Stream {
		return nil, errors.New("the answer was not streamed")
	}
	_, err = c.reader.Discard(length)
	return nil, err
}

// readResponseID keeps the id of an answer, which is as long as those of the plan. Envoy sends an answer that was changed in chunks.
func (c *client) readResponseID(length int, isChunked bool) error {
	var body []byte
	var err error
	if isChunked {
		body, err = io.ReadAll(httputil.NewChunkedReader(c.reader))
		length = len("\r\n")
	} else {
		body, err = c.reader.Peek(length)
	}
	if err != nil {
		return err
	}
	const before = `{"id":"`
	end := len(before) + len(c.IDs[0])
	if !bytes.HasPrefix(body, []byte(before)) || len(body) < end || !bytes.Contains(body, []byte(`"store":true`)) {
		return fmt.Errorf("a response that is not kept: %s", body)
	}
	c.answered = append(c.answered[:0], body[len(before):end]...)
	_, err = c.reader.Discard(length)
	return err
}

// readEvents returns the times between tokens.
func (c *client) readEvents() ([]time.Duration, error) {
	var gaps []time.Duration
	var last time.Time
	tokens := 0
	lines := bufio.NewScanner(httputil.NewChunkedReader(c.reader))
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"delta"`)) {
			continue
		}
		now := time.Now()
		if tokens > 0 {
			gaps = append(gaps, now.Sub(last))
		}
		last = now
		tokens++
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if c.Stream != (tokens == streamedEvents) {
		return nil, fmt.Errorf("%d events instead of %d", tokens, streamedEvents)
	}
	// The empty line behind the last chunk.
	_, err := c.reader.Discard(2)
	return gaps, err
}
