import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Command, Environment, Report } from './run-command.ts'

/** A server to run as a child of this process. */
export interface StartChildOptions {
  /** For messages, such as `envoy`. */
  readonly name: string
  readonly command: Command
  /** Default: this process's own environment. */
  readonly env?: Environment | undefined
  /** Default: this process's working directory. */
  readonly cwd?: string | undefined
  /** Receives every line that the child prints, from both streams. */
  readonly onLine?: Report | undefined
  /** Gets the child. Default: the caller stops it. */
  readonly children?: Children | undefined
}

/** The child processes of one run. */
export interface Children {
  add(child: ManagedChild): void
  /** Stops them one after the other, the last one started first. Others can be added afterwards. */
  stop(): Promise<void>
  /** Rejects when one of them ends, with its name, how it ended and what it printed last. Never resolves. */
  untilOneEnds(): Promise<never>
}

export const createChildren = (): Children => {
  const children: ManagedChild[] = []
  const failWhenEnded = async (child: ManagedChild): Promise<never> => {
    const exit = await child.exited
    throw new Error(`${child.name} ${describeExit(exit)}.${describeOutput(child)}`)
  }
  return {
    add: (child) => void children.push(child),
    stop: async () => {
      for (const child of children.splice(0).reverse()) await child.stop()
    },
    untilOneEnds: () => Promise.race(children.map(failWhenEnded)),
  }
}

/** How a child ended. */
export interface ChildExit {
  /** Undefined when a signal ended it. */
  readonly code: number | undefined
  readonly signal: NodeJS.Signals | undefined
}

/** A running or ended child. Signals go to its process id, and to nothing once it has ended. */
export interface ManagedChild {
  readonly name: string
  readonly pid: number
  /** Settles when the child has ended and its output is read. Never rejects. */
  readonly exited: Promise<ChildExit>
  isRunning(): boolean
  /** The last lines of both streams. */
  output(): readonly string[]
  /** SIGTERM, and SIGKILL after `graceMs` (default 5000). May be called at any time and more than once. */
  stop(options?: { readonly graceMs?: number | undefined }): Promise<ChildExit>
  /** SIGKILL. */
  kill(): Promise<ChildExit>
  /** SIGSTOP: the child keeps its sockets and answers nothing. */
  pause(): void
  /** SIGCONT. */
  resume(): void
}

/** How a child ended, for a sentence that begins with its name. */
export const describeExit = ({ code, signal }: ChildExit): string =>
  signal === undefined ? `ended with exit code ${code}` : `ended by ${signal}`

/** The last lines that a child printed, for the end of a message. */
export const describeOutput = (child: ManagedChild): string => {
  const lines = child.output().slice(-shownLines)
  return lines.length === 0 ? ' It printed nothing.' : ` It printed last:\n${lines.join('\n')}`
}

const defaultGraceMs = 5000
/** How long the pipes of an ended child may stay open, held by a program that it started. */
const pipeGraceMs = 500
const maxLines = 400
const shownLines = 40
const maxLineCharacters = 4000

/**
 * Starts a server. It has a process group of its own, so that Ctrl-C reaches this process alone, which ends its
 * children in the order it wants; and it ends when this process does, however that happens.
 * @throws Error when the program cannot be started at all
 */
export async function startChild(options: StartChildOptions): Promise<ManagedChild> {
  const [file, ...args] = await endWithParent(options.command)
  const child = spawn(file, args, {
    cwd: options.cwd,
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const lines: string[] = []
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      lines.push(line.slice(0, maxLineCharacters))
      if (lines.length > maxLines) lines.shift()
      options.onLine?.(line)
    })
  }

  const exited = whenExited(child)
  // Stays for good: later, it is a signal that could not be sent, and how the child ends tells what came of it.
  child.on('error', () => undefined)
  await once(child, 'spawn').catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`${options.name} cannot be started: ${reason}`)
  })
  const { pid } = child
  if (pid === undefined) throw new Error(`${options.name} has no process id`)
  const signal = (name: NodeJS.Signals): void => {
    if (isRunning(child)) child.kill(name)
  }
  const end = (): void => signal('SIGKILL')
  // Every running child has a listener: their number is no sign of a leak.
  process.setMaxListeners(0).on('exit', end)
  void exited.then(() => process.off('exit', end))

  const managed: ManagedChild = {
    name: options.name,
    pid,
    exited,
    isRunning: () => isRunning(child),
    output: () => lines,
    async stop({ graceMs = defaultGraceMs } = {}) {
      signal('SIGTERM')
      // A paused child takes the signal only when it goes on.
      signal('SIGCONT')
      const timer = setTimeout(() => signal('SIGKILL'), graceMs)
      try {
        return await exited
      } finally {
        clearTimeout(timer)
      }
    },
    kill() {
      signal('SIGKILL')
      return exited
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
  }
  options.children?.add(managed)
  return managed
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

function whenExited(child: ChildProcess): Promise<ChildExit> {
  return new Promise((resolve) => {
    const settle = (): void => resolve({ code: child.exitCode ?? undefined, signal: child.signalCode ?? undefined })
    child.once('close', settle)
    child.once('exit', () => {
      const timer = setTimeout(settle, pipeGraceMs)
      child.once('close', () => clearTimeout(timer))
    })
  })
}

/**
 * The same command, run so that the kernel kills it when this process ends, also by kill -9 (PR_SET_PDEATHSIG, set by
 * util-linux's setpriv, which then becomes the program). Unchanged where setpriv cannot do it.
 */
const endWithParent = async (command: Command): Promise<Command> => {
  const prefix = ['--pdeathsig', 'KILL', '--'] as const
  try {
    await promisify(execFile)('setpriv', [...prefix, 'true'])
    // A parent that ended before setpriv had run would send nothing.
    const unlessOrphaned = ['sh', '-c', '[ "$PPID" = "$0" ] && exec "$@"', String(process.pid)] as const
    return ['setpriv', ...prefix, ...unlessOrphaned, ...command]
  } catch {
    return command
  }
}
