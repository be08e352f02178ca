import { createChildren } from '../playground/child-process.ts'
import { freePort } from '../playground/free-port.ts'
import { readRunSettings } from '../playground/run-settings.ts'
import { startStack } from '../playground/start-stack.ts'
import { type FleetDescription, gatewayEnvironment } from '../playground/vllm/fleet-description.ts'
import { obtainVllmFleet } from '../playground/vllm/start-vllm-fleet.ts'
import { say } from './bench-process.ts'
import type { Vocabulary } from './prompts.ts'

/** What `make run` starts, on a free port, and what is sent to it. */
export interface BenchStack {
  /** Through Envoy. */
  readonly url: string
  /** The engines themselves, `host:port`. */
  readonly pods: readonly string[]
  readonly engine: BenchEngine
  stop(): Promise<void>
}

export interface BenchEngine {
  /** For people. */
  readonly title: string
  readonly model: string
  readonly vocabulary: Vocabulary
  /** Whether even a turn of a few tokens more leaves an artefact of its own; else only whole chunks do. */
  readonly storesEveryTurn: boolean
}

type EngineEnvironment = Readonly<Record<string, string>>

const embedded: BenchEngine = {
  title: 'embedded engine',
  model: 'tiny-random',
  // Its tokens are bytes.
  vocabulary: { firstId: 0, size: 256 },
  storesEveryTurn: true,
}

const vllm = ({ servedModelName }: FleetDescription): BenchEngine => ({
  title: 'vLLM and LMCache',
  model: servedModelName,
  vocabulary: { firstId: 100, size: 3800 },
  storesEveryTurn: false,
})

export const engineNames = ['embedded', 'vllm'] as const
export type EngineName = (typeof engineNames)[number]

export const startBenchStack = async (name: EngineName): Promise<BenchStack> => {
  if (name === 'embedded') return startOn(embedded, {})
  const fleet = await obtainVllmFleet({ env: process.env, onLine: say })
  return startOn(vllm(fleet.description), gatewayEnvironment(fleet.description), () => fleet.stop())
}

/** `release` is called at the end, also after an error. */
const startOn = async (engine: BenchEngine, more: EngineEnvironment, release = async () => {}): Promise<BenchStack> => {
  const children = createChildren()
  const stop = async (): Promise<void> => {
    await children.stop()
    await release()
  }
  try {
    const env = { ...process.env, CTX_RESPONSES_STORE: 'true', ...more, GATEWAY_PORT: String(await freePort()) }
    const settings = readRunSettings(env)
    if (typeof settings === 'string') throw new Error(settings)
    const { url, pods } = await startStack(settings, { env, children, onLine: say })
    return { url, pods, engine, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
