package main

import (
	"log"
	"runtime"
	"sort"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// tick sends the times at which requests are due. Go's own timers are as coarse as a millisecond, more than an answer takes, hence a
// thread of its own whose sleeps the kernel does not round.
func tick(rate int, queue chan<- time.Time, stopped *atomic.Bool) {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		log.Fatal(err)
	}
	begun := time.Now()
	for number := 0; !stopped.Load(); number++ {
		at := begun.Add(time.Duration(number) * time.Second / time.Duration(rate))
		for wait := time.Until(at); wait > 0; wait = time.Until(at) {
			rest := unix.NsecToTimespec(int64(wait))
			// The loop continues an interrupted sleep.
			_ = unix.Nanosleep(&rest, nil)
		}
		queue <- at
	}
	close(queue)
}

// summarise returns quantiles in milliseconds. There has to be at least one time.
func summarise(times []time.Duration) map[string]float64 {
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	total := 0.0
	for _, one := range times {
		total += milliseconds(one)
	}
	quantile := func(share float64) float64 {
		return milliseconds(times[min(len(times)-1, int(share*float64(len(times))))])
	}
	return map[string]float64{
		"mean": total / float64(len(times)),
		"p50":  quantile(0.50),
		"p99":  quantile(0.99),
		"max":  milliseconds(times[len(times)-1]),
	}
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration) / float64(time.Millisecond)
}
