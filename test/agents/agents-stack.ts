import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createChildren, type ManagedChild } from '../../playground/child-process.ts'
import { freePort } from '../../playground/free-port.ts'
import type { StartServer } from '../../playground/keep-running.ts'
import { randomModel } from '../../playground/run.ts'
import { readRunSettings } from '../../playground/run-settings.ts'
import { startStack } from '../../playground/start-stack.ts'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'

/** A line of the gateway's log about a turn of a session. */
export interface TurnLine {
  /** Digest of the session. */
  readonly session: string
  readonly pod: string
  readonly cacheStatus: string
  readonly namedBy: string
  readonly promptTokens: number
  readonly cachedTokens: number
}

/** What `make run` starts, on a free port. */
export interface AgentsStack {
  readonly url: string
  readonly pods: readonly string[]
  /** The turns of sessions until now, in the order in which they ended. */
  turns(): readonly TurnLine[]
  /** Ends a pod by SIGKILL, and waits until the gateway knows. Resolves to the start of another one under its address. */
  killPod(address: string): Promise<() => Promise<void>>
  stop(): Promise<void>
}

export const startAgentsStack = async (): Promise<AgentsStack> => {
  const folder = await mkdtemp(join(tmpdir(), 'agents-'))
  const children = createChildren()
  const stop = async (): Promise<void> => {
    await children.stop()
    await rm(folder, { recursive: true, force: true })
  }
  const lines: TurnLine[] = []
  const onLine = (line: string): void => {
    if (!line.includes('"msg":"turn"')) return
    const turn = JSON.parse(line) as TurnLine & { readonly msg: string }
    if (turn.msg === 'turn' && turn.session !== undefined) lines.push(turn)
  }
  const pods = new Map<string, { child: ManagedChild; readonly again: () => Promise<void> }>()
  const keep: StartServer = async (start) => {
    const first = await start()
    if ('address' in first && first.child.name.startsWith('pod-')) {
      const pod = {
        child: first.child,
        again: async (): Promise<void> => {
          pod.child = (await start()).child
        },
      }
      pods.set(String(first.address), pod)
    }
    return first
  }
  try {
    const port = await freePort()
    const env = { ...process.env, GATEWAY_PORT: String(port), XDG_STATE_HOME: folder, CTX_LOG_LEVEL: 'debug' }
    const settings = readRunSettings(env)
    if (typeof settings === 'string') throw new Error(settings)
    const stack = await startStack(settings, { env, children, onLine, keep, randomModel })
    const untilReadyIs = (address: string, value: number): Promise<true> =>
      eventually(async () => {
        const { text } = await call(`${stack.adminUrl}/metrics`)
        const line = text.split('\n').find((one) => one.includes('_pod_ready{') && one.includes(address))
        return line?.endsWith(` ${value}`) === true
      })
    return {
      url: stack.url,
      pods: stack.pods,
      turns: () => lines,
      killPod: async (address) => {
        const pod = pods.get(address)
        if (pod === undefined) throw new Error(`there is no pod ${address}`)
        await pod.child.kill()
        return async () => {
          await pod.again()
          await untilReadyIs(address, 1)
        }
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
