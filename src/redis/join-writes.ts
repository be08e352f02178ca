import type { Writable } from 'node:stream'

/** So many commands go out together: Redis begins with them while the next ones are still being made. */
const commandsPerWrite = 8

/**
 * To be called in front of every command: joins the commands of one turn of the event loop into few writes, since to the kernel a write costs more
 * than what is in it. A command alone goes out as soon as what made it has run.
 */
export const createWriteJoiner = (): ((stream: Writable) => void) => {
  let joined: Writable | undefined
  let commands = 0

  const send = (): void => {
    joined?.uncork()
    joined = undefined
  }

  return (stream) => {
    if (joined !== stream) {
      if (joined === undefined) process.nextTick(send)
      joined?.uncork()
      joined = stream
      commands = 0
      stream.cork()
    }
    if (commands === commandsPerWrite) {
      stream.uncork()
      stream.cork()
      commands = 0
    }
    commands += 1
  }
}
