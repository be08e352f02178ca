import { type ChildProcess, spawn } from 'node:child_process'
import { endWithParent } from './end-with-parent.ts'
import { createOutputRing } from './output-ring.ts'
import type { Command, Environment } from './server-tool.ts'

/** A server to run as a child of this process. */
export interface StartChildOptions {
  /** For messages, such as `envoy`. */
  readonly name: string
  readonly command: Command
  /** Default: this process's own environment. */
  readonly env?: Environment | undefined
  /** Default: this process's working directory. */
  readonly cwd?: string | undefined
  /** Written to the child's standard input, which is then closed. Default: nothing to read. */
  readonly stdin?: string | undefined
  /** Called with every line the child prints, from both streams. */
  readonly onLine?: ((line: string) => void) | undefined
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
  /** Calls the listener with every line from now on; the answer ends that. */
  onLine(listener: (line: string) => void): () => void
  /** SIGTERM, and SIGKILL after `graceMs` (default 5000). May be called at any time and more than once. */
  stop(options?: { readonly graceMs?: number | undefined }): Promise<ChildExit>
  /** SIGKILL. */
  kill(): Promise<ChildExit>
  /** SIGSTOP: the child keeps its sockets and answers nothing. */
  pause(): void
  /** SIGCONT. */
  resume(): void
}

/** Thrown when a program cannot be started at all. */
export class ChildStartError extends Error {
  override readonly name = 'ChildStartError'
}

const defaultGraceMs = 5000
/** How long the pipes of an ended child may stay open, held by a program that it started. */
const pipeGraceMs = 500

/**
 * Starts a server. It has a process group of its own, so that Ctrl-C reaches this process alone, which ends its children
 * in the order it wants; and it ends when this process does, however that happens.
 * @throws ChildStartError
 */
export async function startChild(options: StartChildOptions): Promise<ManagedChild> {
  const [file, ...args] = await endWithParent(options.command)
  const child = spawn(file, args, {
    cwd: options.cwd,
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  const ring = createOutputRing()
  if (options.onLine !== undefined) ring.onLine(options.onLine)
  for (const stream of [child.stdout, child.stderr]) {
    const sink = ring.openStream()
    stream
      .setEncoding('utf8')
      .on('data', (text: string) => sink.write(text))
      .on('end', () => sink.end())
  }
  // A child that ends before it has read its input breaks the pipe; how it ended says more.
  child.stdin.on('error', () => undefined).end(options.stdin ?? '')

  const exited = whenExited(child)
  const pid = await whenSpawned(child, options.name)
  const signal = (name: NodeJS.Signals): void => {
    if (isRunning(child)) child.kill(name)
  }
  endOnExit({ exited, end: () => signal('SIGKILL') })

  return {
    name: options.name,
    pid,
    exited,
    isRunning: () => isRunning(child),
    output: () => ring.lines(),
    onLine: (listener) => ring.onLine(listener),
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
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

function whenSpawned(child: ChildProcess, name: string): Promise<number> {
  return new Promise((resolve, reject) => {
    // Stays for good: later, it is a signal that could not be sent, and how the child ends tells what came of it.
    child.on('error', (error) => reject(new ChildStartError(`${name} cannot be started: ${error.message}`)))
    child.once('spawn', () => {
      if (child.pid === undefined) reject(new ChildStartError(`${name} has no process id`))
      else resolve(child.pid)
    })
  })
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

/** One listener per running child; the limit on listeners, a guard against leaks, moves with their number. */
function endOnExit({ exited, end }: { exited: Promise<ChildExit>; end: () => void }): void {
  process.setMaxListeners(process.getMaxListeners() + 1)
  process.on('exit', end)
  void exited.then(() => {
    process.off('exit', end)
    process.setMaxListeners(process.getMaxListeners() - 1)
  })
}
