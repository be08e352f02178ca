import { join } from 'node:path'
import { startChild } from '../playground/child-process.ts'
import { freePort } from '../playground/free-port.ts'
import { packageRoot } from '../playground/paths.ts'
import { obtainVllmFleet } from '../playground/vllm/start-vllm-fleet.ts'
import { readyOrKilled } from '../playground/wait-until-ready.ts'
import { type PromptMaker, textPrompts, tokenPrompts } from './prompts.ts'

/** What `make run` starts, on a free port, and what is asked of it. */
export interface BenchStack {
  /** Through Envoy. */
  readonly url: string
  /** The engines themselves, `host:port`. */
  readonly pods: readonly string[]
  readonly engine: BenchEngine
  stop(): Promise<unknown>
}

export interface BenchEngine {
  /** For people. */
  readonly title: string
  readonly model: string
  readonly prompts: PromptMaker
  /** Whether even a turn of a few tokens more leaves an artefact of its own; else only whole chunks do. */
  readonly storesEveryTurn: boolean
}

const readyTimeoutMs = 300_000

const engines = {
  embedded: { title: 'embedded engine', model: 'tiny-random', prompts: textPrompts, storesEveryTurn: true },
  vllm: { title: 'vLLM and LMCache', model: 'small', prompts: tokenPrompts, storesEveryTurn: false },
} as const

export const engineNames = ['embedded', 'vllm'] as const
export type EngineName = (typeof engineNames)[number]

export const startBenchStack = async (name: EngineName): Promise<BenchStack> => {
  switch (name) {
    case 'embedded':
      return startGatewayOn(engines.embedded, { env: {}, release: async () => {} })
    case 'vllm': {
      const report = (line: string): void => void process.stderr.write(`${line}\n`)
      const fleet = await obtainVllmFleet({ env: process.env, onLine: report })
      const { description } = fleet
      return startGatewayOn(
        { ...engines.vllm, model: description.servedModelName },
        {
          env: {
            PODS: description.pods.map(({ address }) => address).join(','),
            CONNECTOR: 'lmcache',
            LMCACHE_URL: description.coordinatorUrl,
            LMCACHE_INSTANCES: description.pods
              .map(({ address, lmcacheInstance }) => `${address}=${lmcacheInstance}`)
              .join(','),
          },
          release: () => fleet.stop(),
        },
      )
    }
  }
}

const startGatewayOn = async (
  engine: BenchEngine,
  fleet: { readonly env: Readonly<Record<string, string>>; release(): Promise<void> },
): Promise<BenchStack> => {
  try {
    const port = await freePort()
    const child = await startChild({
      name: 'run',
      command: [process.execPath, join(packageRoot(), 'dist/src/main.js'), 'run'],
      env: { ...process.env, GATEWAY_PORT: String(port), ...fleet.env },
    })
    const pattern = /^ready .* pods (\S+), (\S+)/
    await readyOrKilled(child, { kind: 'line', pattern }, { timeoutMs: readyTimeoutMs })
    const [, ...pods] = pattern.exec(child.output().find((line) => pattern.test(line)) ?? '') ?? []
    const stop = async (): Promise<void> => {
      await child.stop({ graceMs: 30_000 })
      await fleet.release()
    }
    return { url: `http://127.0.0.1:${port}`, pods, engine, stop }
  } catch (error) {
    await fleet.release()
    throw error
  }
}
