// Sends chat completions over keep-alive HTTP/1.1 connections and times the answers.
//
// Without -rate every connection sends its next request as soon as the last one is answered. With -rate requests are due by the clock,
// independent of earlier answers, and a latency counts from the time at which the request was due: a stall shows in full.
//
// Prints JSON lines: {"event":"measuring"} when the warm-up is over, "progress" once a second if asked for, "result" at the end.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type plan struct {
	target      string
	connections int
	rate        int
	count       int64
	measured    time.Duration
	// Sessions to use: an answer without x-session-id is a failure then, and after a create.
	ids       []string
	bodyBytes int
	stream    bool
	// Seconds to live of a session that each request creates; 0: requests are turns.
	createTTL int
}

// tally is what one connection saw since the warm-up.
type tally struct {
	latencies  []time.Duration
	firstEvent []time.Duration
	gaps       []time.Duration
}

type run struct {
	plan
	isMeasuring atomic.Bool
	answered    atomic.Int64
	failed      atomic.Int64
	claimed     atomic.Int64
	stopped     atomic.Bool
	failureOnce sync.Once
	failure     atomic.Value
}

func (r *run) fail(reason string) {
	r.failed.Add(1)
	r.failureOnce.Do(func() { r.failure.Store(reason) })
}

// isExhausted claims one of -count requests.
func (r *run) isExhausted() bool { return r.count > 0 && r.claimed.Add(1) > r.count }

// due hands out requests to a connection: at once, or at their time. False when there are no more.
func (r *run) due(queue <-chan time.Time) (time.Time, bool) {
	if queue != nil {
		at, open := <-queue
		return at, open && !r.isExhausted()
	}
	if r.stopped.Load() || r.isExhausted() {
		return time.Time{}, false
	}
	return time.Now(), true
}

func (r *run) work(number int, queue <-chan time.Time, seen *tally) {
	client := newClient(r.plan, number)
	defer client.close()
	for {
		at, ok := r.due(queue)
		if !ok {
			return
		}
		// A request that began in the warm-up does not count, unless it fails.
		counts := r.isMeasuring.Load()
		outcome, err := client.exchange()
		if err != nil {
			r.fail(err.Error())
			client.close()
			// No busy loop of failures when the port is closed.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !counts {
			continue
		}
		r.answered.Add(1)
		seen.latencies = append(seen.latencies, time.Since(at))
		if r.stream {
			seen.firstEvent = append(seen.firstEvent, outcome.firstEvent.Sub(at))
			seen.gaps = append(seen.gaps, outcome.gaps...)
		}
	}
}

func say(line map[string]any) {
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		log.Fatal(err)
	}
}

func (r *run) reportProgress(begun time.Time) {
	for range time.Tick(time.Second) {
		say(map[string]any{"event": "progress", "answered": r.answered.Load(), "failures": r.failed.Load(), "seconds": time.Since(begun).Seconds()})
	}
}

func (r *run) start(warmUp time.Duration, progress bool) {
	seen := make([]tally, r.connections)
	var queue chan time.Time
	if r.rate > 0 {
		// Roomier than any backlog: the clock never waits for the connections.
		queue = make(chan time.Time, max(int(r.count), r.rate*int((warmUp+r.measured)/time.Second+2)))
		go tick(r.rate, queue, &r.stopped)
	}
	// Without a warm-up the very first requests count, too.
	r.isMeasuring.Store(warmUp == 0)
	var done sync.WaitGroup
	for number := range r.connections {
		done.Add(1)
		go func() {
			defer done.Done()
			r.work(number, queue, &seen[number])
		}()
	}
	time.Sleep(warmUp)
	begun := time.Now()
	r.isMeasuring.Store(true)
	say(map[string]any{"event": "measuring"})
	if progress {
		go r.reportProgress(begun)
	}
	if r.count == 0 {
		time.AfterFunc(r.measured, func() { r.stopped.Store(true) })
	}
	done.Wait()
	r.stopped.Store(true)
	r.conclude(seen, time.Since(begun))
}

func (r *run) conclude(seen []tally, took time.Duration) {
	var all tally
	for _, one := range seen {
		all.latencies = append(all.latencies, one.latencies...)
		all.firstEvent = append(all.firstEvent, one.firstEvent...)
		all.gaps = append(all.gaps, one.gaps...)
	}
	result := map[string]any{
		"event":    "result",
		"requests": r.answered.Load(),
		"failures": r.failed.Load(),
		"seconds":  took.Seconds(),
	}
	if len(all.latencies) > 0 {
		result["latencyMs"] = summarise(all.latencies)
	}
	if reason := r.failure.Load(); reason != nil {
		result["firstFailure"] = reason
	}
	if len(all.gaps) > 0 {
		result["firstEventMs"] = summarise(all.firstEvent)
		result["gapMs"] = summarise(all.gaps)
	}
	say(result)
}

func main() {
	var r run
	var idsFile string
	var warmUp time.Duration
	var progress bool
	flag.StringVar(&r.target, "target", "", "host:port")
	flag.IntVar(&r.connections, "connections", 32, "keep-alive connections")
	flag.IntVar(&r.rate, "rate", 0, "requests per second; 0: as many as are answered")
	flag.Int64Var(&r.count, "count", 0, "requests; 0: as many as fit into -measured")
	flag.DurationVar(&warmUp, "warm-up", time.Second/2, "time that does not count")
	flag.DurationVar(&r.measured, "measured", 2*time.Second, "time that counts")
	flag.StringVar(&idsFile, "ids", "", "file with a session id per line, all of one length")
	flag.IntVar(&r.bodyBytes, "body-bytes", 2048, "length of a request's body")
	flag.IntVar(&r.createTTL, "create-ttl", 0, "create a session of that many seconds with each request")
	flag.BoolVar(&r.stream, "stream", false, "ask for a streamed answer")
	flag.BoolVar(&progress, "progress", false, "print a line every second")
	flag.Parse()
	if idsFile != "" {
		text, err := os.ReadFile(idsFile)
		if err != nil {
			log.Fatal(err)
		}
		r.ids = strings.Fields(string(text))
	}
	r.start(warmUp, progress)
}
