const intervalMs = 100

/** Measures every 100 ms by how many milliseconds a timer fires late: the time a request may have waited for the event loop. */
export const watchEventLoop = (onLag: (lagMs: number) => void): { stop(): void } => {
  let dueMs = performance.now() + intervalMs
  const timer = setInterval(() => {
    const nowMs = performance.now()
    onLag(Math.max(0, nowMs - dueMs))
    dueMs = nowMs + intervalMs
  }, intervalMs)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}
