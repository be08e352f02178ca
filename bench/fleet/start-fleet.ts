import { join } from 'node:path'
import { z } from 'zod'
import type { Children, ManagedChild } from '../../playground/child-process.ts'
import { randomModelPath } from '../../playground/engine/random-model.ts'
import { freePort } from '../../playground/free-port.ts'
import { toolsDir } from '../../playground/paths.ts'
import type { Environment } from '../../playground/run-command.ts'
import { startEngine } from '../../playground/start-engine.ts'
import { gatewayEnvironment } from '../../playground/vllm/fleet-description.ts'
import type { RunningVllmFleet } from '../../playground/vllm/start-vllm-fleet.ts'
import type { Vocabulary } from '../prompts.ts'
import { contextTokens, type FleetOptions } from './fleet-options.ts'
import { startLlamaServer } from './start-llama-server.ts'
import type { WayName } from './ways.ts'

/** Pods that serve. */
export interface Fleet {
  /** `127.0.0.1:8080` */
  readonly pods: readonly string[]
  /** Of the pods that the bench has started. */
  readonly kvDirectory: string
  /** Of each pod; empty where the bench cannot end them. */
  readonly processes: readonly PodProcess[]
  readonly model: string
  readonly vocabulary: Vocabulary
  /** Of a gateway in front of them. */
  readonly environment: Environment
}

/** A pod's process, which can end and be started again on its port. */
export interface PodProcess {
  child(): ManagedChild
  startAgain(): Promise<void>
}

interface StartFleet {
  readonly way: WayName
  readonly children: Children
  /** For what is stored; the fleet's own. */
  readonly folder: string
}

const modelName = 'bench-fleet'

/** Starts pods that hold nothing yet. @throws InstallError, NotReadyError */
export const startFleet = async (options: FleetOptions, { way, children, folder }: StartFleet): Promise<Fleet> => {
  const kvDirectory = join(folder, 'kv')
  const modelPath =
    options.modelFile ??
    (await randomModelPath(join(toolsDir(), 'models'), options.shape === 'agents' ? 'words' : 'bytes'))
  const { slots, threads, llamaArguments } = options
  const start = async (pod: number, port: number): Promise<ManagedChild> => {
    const name = `pod-${pod}`
    const common = {
      name,
      port,
      children,
      kvDirectory,
      modelPath,
      slots,
      contextTokensPerSlot: contextTokens[options.shape],
    }
    if (options.engine === 'llama-server') {
      const ofGateway = way === 'gateway'
      return startLlamaServer({ ...common, modelName, threads, ofGateway, moreArguments: llamaArguments })
    }
    const extraArguments = ['--log-level', 'warn']
    return (await startEngine({ ...common, modelNames: [modelName], extraArguments })).child
  }
  const running = await Promise.all(
    Array.from({ length: options.pods }, async (_, pod) => {
      const port = await freePort()
      let child = await start(pod, port)
      const startAgain = async (): Promise<void> => {
        child = await start(pod, port)
      }
      return { address: `127.0.0.1:${port}`, process: { child: () => child, startAgain } }
    }),
  )
  const pods = running.map(({ address }) => address)
  return {
    pods,
    processes: running.map(({ process }) => process),
    kvDirectory,
    model: modelName,
    vocabulary: await vocabularyOf(pods[0]),
    environment: { PODS: pods.join(), KV_DIR: kvDirectory },
  }
}

/** The pods of a vLLM fleet, which outlive a way. */
export const vllmFleet = ({ description }: RunningVllmFleet, { connector }: FleetOptions): Fleet => {
  const pods = description.pods.map(({ address }) => address)
  return {
    pods,
    processes: [],
    kvDirectory: description.l2Directory,
    model: description.servedModelName,
    vocabulary: { firstId: 100, size: 3800 },
    // Options of one connector are refused with another.
    environment:
      connector === 'lmcache' ? gatewayEnvironment(description) : { PODS: pods.join(), CONNECTOR: connector },
  }
}

const models = z.object({ data: z.array(z.object({ meta: z.object({ n_vocab: z.int() }) })).min(1) })

/** Ids that are ordinary tokens: the first ones of a large vocabulary are often special. */
const vocabularyOf = async (pod: string | undefined): Promise<Vocabulary> => {
  const { data } = models.parse(await (await fetch(`http://${pod}/v1/models`)).json())
  const size = Math.min(...data.map(({ meta }) => meta.n_vocab))
  return size < 1000 ? { firstId: 0, size: Math.min(size, 256) } : { firstId: 300, size: Math.min(size - 600, 20_000) }
}
