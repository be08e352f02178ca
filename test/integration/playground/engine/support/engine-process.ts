// Starts real engine processes for tests. They end with the test, and also when the test process dies.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { ReadyLine } from '../../../../../playground/engine/run-engine.ts'
import { engineEntry, prepareEngine } from './engine-build.ts'

/** A running engine. */
export interface EngineProcess extends ReadyLine {
  /** Where it serves, without a slash at the end. */
  readonly url: string
  /** Sends the signal and resolves with the exit code, null for a process that a signal killed. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** What it wrote to standard error so far. */
  log(): string
}

/** What became of a process that has ended. */
export interface EndedProcess {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The engine processes of one test file. */
export interface EngineProcesses {
  /** Starts an engine with these arguments, on a free port unless they say otherwise, and waits until it can serve. */
  start(args: readonly string[]): Promise<EngineProcess>
  /** Runs one to its end, for arguments with which it does not serve. */
  runToEnd(args: readonly string[]): Promise<EndedProcess>
  /** Ends all that were started, ready or not. */
  stopAll(): Promise<void>
}

interface Child {
  readonly process: ChildProcess
  readonly ended: Promise<EndedProcess>
  readonly stderr: () => string
  readonly firstLine: Promise<string | undefined>
}

/** Creates them; `stopAll` belongs into `afterAll`. */
export function createEngineProcesses(): EngineProcesses {
  const children: Child[] = []
  const launch = async (args: readonly string[]) => {
    await prepareEngine()
    const child = spawnEngine(args)
    children.push(child)
    return child
  }
  return {
    async start(args) {
      const child = await launch(['--exit-with-parent', ...args])
      const line = await Promise.race([child.firstLine, child.ended.then(() => undefined)])
      if (line === undefined) throw new Error(`the engine ended before it was ready:\n${child.stderr()}`)
      const ready: ReadyLine = JSON.parse(line)
      return {
        ...ready,
        url: `http://${ready.host}:${ready.port}`,
        log: child.stderr,
        async stop(signal = 'SIGTERM') {
          child.process.kill(signal)
          return (await child.ended).code
        },
      }
    },
    runToEnd: async (args) => (await launch(args)).ended,
    async stopAll() {
      for (const child of children) child.process.kill('SIGKILL')
      await Promise.all(children.map((child) => child.ended))
    },
  }
}

function spawnEngine(args: readonly string[]): Child {
  const child = spawn(process.execPath, [engineEntry, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  const stdout: string[] = []
  const stderr: string[] = []
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk.toString()))
  const lines = createInterface({ input: child.stdout })
  const firstLine = new Promise<string | undefined>((resolve) => {
    lines.once('line', resolve)
    lines.once('close', () => resolve(undefined))
  })
  lines.on('line', (line) => stdout.push(`${line}\n`))
  const ended = new Promise<EndedProcess>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout: stdout.join(''), stderr: stderr.join('') }))
  })
  return { process: child, ended, firstLine, stderr: () => stderr.join('') }
}
