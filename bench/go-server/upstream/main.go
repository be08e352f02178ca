// An engine's stand-in that costs next to nothing: it reads HTTP/1.1 off the socket, answers with a fixed text and counts what it saw.
// A body with "stream":true is answered with events at a fixed pace instead.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	readBufferBytes = 128 << 10
	events          = 50
	// Between two events of a streamed answer.
	pace      = 20 * time.Millisecond
	headBytes = 512
	tailBytes = 256
	// With the headers that vLLM's server writes.
	answerHead = "HTTP/1.1 200 OK\r\ndate: Sun, 01 Nov 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"
)

var (
	completions = `{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":512,"completion_tokens":16,"total_tokens":528,"prompt_tokens_details":{"cached_tokens":496}}}`
	completed   = answer("application/json", completions)
	response    = `{"id":"resp_%032d","object":"response","created_at":1700000000,"status":"completed","model":"bench","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Yes.","annotations":[]}]}],"previous_response_id":null,"store":false,"usage":{"input_tokens":512,"output_tokens":16,"total_tokens":528,"input_tokens_details":{"cached_tokens":496}}}`
	healthy     = answer("text/plain", "ok\n")
	models      = answer("application/json", `{"object":"list","data":[{"id":"bench","object":"model"}]}`)
	metrics     = answer("text/plain; version=0.0.4", fmt.Sprintf("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", time.Now().Unix()))
	streamHead  = []byte(answerHead + "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
	token       = chunk(`data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n")
	lastEvents  = append(chunk(`data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[],"usage":{"prompt_tokens":512,"completion_tokens":50,"total_tokens":562,"prompt_tokens_details":{"cached_tokens":496}}}`+"\n\ndata: [DONE]\n\n"), "0\r\n\r\n"...)
)

// What reached the upstream: requests on inference paths, those that a reference plugin had marked, those with a spliced field, and how
// many bytes the shortest body on /v1/responses had since that was last asked for.
var requests, marked, spliced, shortest atomic.Int64

func answer(contentType, body string) []byte {
	return []byte(fmt.Sprintf("%scontent-type: %s\r\ncontent-length: %d\r\n\r\n%s", answerHead, contentType, len(body), body))
}

func chunk(text string) []byte { return []byte(fmt.Sprintf("%x\r\n%s\r\n", len(text), text)) }

type request struct {
	path                                   string
	bodyBytes                              int
	isChunked, isMarked, isSpliced, stream bool
}

// readHead knows just enough of HTTP/1.1 for what Envoy and the bench send.
func readHead(reader *bufio.Reader) (request, error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return request{}, err
	}
	parts := bytes.SplitN(line, []byte(" "), 3)
	if len(parts) != 3 {
		return request{}, fmt.Errorf("no request line: %q", line)
	}
	head := request{path: string(parts[1])}
	for {
		line, err = reader.ReadSlice('\n')
		if err != nil {
			return request{}, err
		}
		name, value, isHeader := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		switch {
		case len(name) == 0:
			return head, nil
		case !isHeader:
			return request{}, fmt.Errorf("no header: %q", line)
		case bytes.EqualFold(name, []byte("content-length")):
			if head.bodyBytes, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return request{}, err
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			head.isChunked = true
		case bytes.EqualFold(name, []byte("x-bench-mark")):
			head.isMarked = true
		}
	}
}

// readBody reads the whole body and looks into its two ends.
func readBody(reader *bufio.Reader, seen *request) error {
	if seen.isChunked {
		body, err := io.ReadAll(httputil.NewChunkedReader(reader))
		if err != nil {
			return err
		}
		seen.bodyBytes = len(body)
		seen.stream = bytes.Contains(body[:min(len(body), headBytes)], []byte(`"stream":true`))
		seen.isSpliced = bytes.Contains(body[max(0, len(body)-tailBytes):], []byte(`"cache_salt":`))
		_, err = reader.Discard(len("\r\n"))
		return err
	}
	start, err := reader.Peek(min(seen.bodyBytes, headBytes))
	if err != nil {
		return err
	}
	seen.stream = bytes.Contains(start, []byte(`"stream":true`))
	seen.isSpliced = bytes.Contains(start, []byte(`"cache_salt":`))
	tailLength := min(seen.bodyBytes, tailBytes)
	if _, err := reader.Discard(seen.bodyBytes - tailLength); err != nil {
		return err
	}
	tail, err := reader.Peek(tailLength)
	if err != nil {
		return err
	}
	seen.isSpliced = seen.isSpliced || bytes.Contains(tail, []byte(`"cache_salt":`))
	_, err = reader.Discard(tailLength)
	return err
}

func serve(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, readBufferBytes)
	for {
		seen, err := readHead(reader)
		if err != nil {
			return
		}
		if readBody(reader, &seen) != nil || respond(connection, seen) != nil {
			return
		}
	}
}

func respond(connection net.Conn, seen request) error {
	switch seen.path {
	case "/health", "/v1/traces": // spans of a gateway are dropped
		return write(connection, healthy)
	case "/v1/models": // a check of the gateway, as the two above
		return write(connection, models)
	case "/metrics":
		return write(connection, metrics)
	case "/counts":
		counts := fmt.Sprintf(`{"requests":%d,"marked":%d,"spliced":%d,"shortest":%d}`,
			requests.Load(), marked.Load(), spliced.Load(), shortest.Swap(math.MaxInt64))
		return write(connection, answer("application/json", counts))
	}
	number := requests.Add(1)
	if seen.path == "/v1/responses" {
		for least := shortest.Load(); int64(seen.bodyBytes) < least; least = shortest.Load() {
			if shortest.CompareAndSwap(least, int64(seen.bodyBytes)) {
				break
			}
		}
		return write(connection, answer("application/json", fmt.Sprintf(response, number)))
	}
	if seen.isMarked {
		marked.Add(1)
	}
	if seen.isSpliced {
		spliced.Add(1)
	}
	if seen.stream {
		return stream(connection)
	}
	return write(connection, completed)
}

// stream sends each event at its own time, so that a late one does not put off those behind it.
func stream(connection net.Conn) error {
	if err := write(connection, streamHead); err != nil {
		return err
	}
	begun := time.Now()
	for event := 0; event < events; event++ {
		time.Sleep(time.Until(begun.Add(time.Duration(event) * pace)))
		if err := write(connection, token); err != nil {
			return err
		}
	}
	return write(connection, lastEvents)
}

func write(connection net.Conn, text []byte) error {
	_, err := connection.Write(text)
	return err
}

func accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(connection)
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:19101", "addresses, separated by commas: one for each pod")
	flag.Parse()
	for _, address := range strings.Split(*listen, ",") {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			log.Fatal(err)
		}
		go accept(listener)
	}
	select {}
}
