// Sends chat completions over keep-alive HTTP/1.1 connections and times the answers. Its one argument is the plan, as JSON.
//
// Without a rate every connection sends its next request as soon as the last one is answered. With a rate requests are due by the clock,
// independent of earlier answers, and a latency counts from the time at which the request was due: a stall shows in full.
//
// Prints JSON lines: "progress" once a second if asked for, "result" at the end.
package main

import (
	"encoding/json"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

type plan struct {
	// host:port
	Target      string
	Connections int
	// Requests per second; 0: as many as are answered.
	Rate int
	// Requests in all; 0: as many as fit into the time.
	Requests int64
	Seconds  float64
	// Sessions to use, all ids of one length.
	IDs []string
	// The header that holds the id, or "body." and a member of the body. "previous_response_id": the ids are of responses, and
	// turns continue them.
	IDIn string
	// Seconds to live of a session that each request creates; 0: requests are turns.
	CreateTTL int
	BodyBytes int
	Stream    bool
	Progress  bool
}

// tally is what one connection saw.
type tally struct {
	latencies []time.Duration
	gaps      []time.Duration
}

type run struct {
	plan
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

// due hands out requests to a connection: at once, or at their time. False when there are no more.
func (r *run) due(queue <-chan time.Time) (time.Time, bool) {
	isExhausted := func() bool { return r.Requests > 0 && r.claimed.Add(1) > r.Requests }
	if queue == nil {
		return time.Now(), !r.stopped.Load() && !isExhausted()
	}
	// What was due before the end is sent, however late.
	at, open := <-queue
	return at, open && !isExhausted()
}

func (r *run) work(client *client, queue <-chan time.Time, seen *tally) {
	defer client.close()
	for {
		at, ok := r.due(queue)
		if !ok {
			return
		}
		gaps, err := client.exchange()
		if err != nil {
			r.fail(err.Error())
			client.close()
			// No busy loop of failures when the port is closed.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		r.answered.Add(1)
		seen.latencies = append(seen.latencies, time.Since(at))
		seen.gaps = append(seen.gaps, gaps...)
	}
}

func (r *run) say(event string, begun time.Time, more map[string]any) {
	line := map[string]any{
		"event":    event,
		"requests": r.answered.Load(),
		"failures": r.failed.Load(),
		"seconds":  time.Since(begun).Seconds(),
	}
	for name, value := range more {
		line[name] = value
	}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		log.Fatal(err)
	}
}

func (r *run) start() {
	seen := make([]tally, r.Connections)
	clients := make([]*client, r.Connections)
	for number := range clients {
		clients[number] = newClient(r.plan, number)
	}
	var queue chan time.Time
	if r.Rate > 0 {
		// Roomier than any backlog: the clock never waits for the connections.
		queue = make(chan time.Time, max(int(r.Requests), r.Rate*int(r.Seconds+2)))
		go tick(r.Rate, queue, &r.stopped)
	}
	begun := time.Now()
	var done sync.WaitGroup
	for number := range clients {
		done.Add(1)
		go func() {
			defer done.Done()
			r.work(clients[number], queue, &seen[number])
		}()
	}
	if r.Progress {
		go func() {
			for range time.Tick(time.Second) {
				r.say("progress", begun, nil)
			}
		}()
	}
	if r.Requests == 0 {
		time.AfterFunc(time.Duration(r.Seconds*float64(time.Second)), func() { r.stopped.Store(true) })
	}
	done.Wait()
	r.say("result", begun, r.summary(seen))
}

func (r *run) summary(seen []tally) map[string]any {
	var all tally
	for _, one := range seen {
		all.latencies = append(all.latencies, one.latencies...)
		all.gaps = append(all.gaps, one.gaps...)
	}
	result := map[string]any{}
	for name, times := range map[string][]time.Duration{"latencyMs": all.latencies, "gapMs": all.gaps} {
		if len(times) > 0 {
			result[name] = summarise(times)
		}
	}
	if reason := r.failure.Load(); reason != nil {
		result["firstFailure"] = reason
	}
	return result
}

func main() {
	var r run
	if err := json.Unmarshal([]byte(os.Args[1]), &r.plan); err != nil {
		log.Fatal(err)
	}
	r.start()
}
