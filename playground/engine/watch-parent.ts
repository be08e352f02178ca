import { fstatSync } from 'node:fs'

const pollMs = 500

/**
 * Calls `onGone` once the parent process is no more: its id changes when the process is handed to another parent, and a
 * standard input that the parent holds open as a pipe ends with it.
 */
export function watchParent(onGone: () => void): void {
  const parentId = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parentId) return
    clearInterval(timer)
    onGone()
  }, pollMs)
  timer.unref()
  if (!standardInputIsPipe()) return
  process.stdin.once('end', onGone)
  process.stdin.once('error', onGone)
  process.stdin.resume()
}

function standardInputIsPipe(): boolean {
  try {
    const input = fstatSync(0)
    return input.isFIFO() || input.isSocket()
  } catch {
    return false
  }
}
