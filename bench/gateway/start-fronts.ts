import type { ServerTool } from '../../playground/install/find-tool.ts'
import type { Command } from '../../playground/run-command.ts'
import { startEnvoy } from '../../playground/start-envoy.ts'
import type { Children } from './children.ts'
import { joinConfigs, type NamedConfig } from './joined-config.ts'

/** What Envoy is told for a target. */
export interface Front extends NamedConfig {
  /** Where it listens: `127.0.0.1:8000` */
  readonly address: string
}

export interface FrontOptions {
  readonly envoyTool: ServerTool
  readonly children: Children
  /** Worker threads of every Envoy. */
  readonly envoyWorkers: number
  /** What to start instead of Envoy, one for each front, so that none counts what is done for another. Default: one Envoy for all. */
  readonly wrapEnvoy?: (command: Command) => Command
}

/** Also for one that callgrind watches. */
const readyTimeoutMs = 120_000

/**
 * Starts what stands in front of all targets, and returns whose process it is. One Envoy for all: two of one configuration may differ by a tenth for as
 * long as they live, and two listeners of one by far less.
 */
export const startFronts = async (
  fronts: readonly Front[],
  options: FrontOptions,
): Promise<(front: Front) => number> => {
  const pids = new Map<Front, number>()
  const { wrapEnvoy } = options
  if (wrapEnvoy === undefined) {
    const [first, ...others] = fronts
    if (first === undefined) throw new Error('there is no target to start')
    const pid = await startOne(options, options.envoyTool, joinConfigs([first, ...others]))
    for (const front of fronts) pids.set(front, pid)
  } else {
    const tool = { ...options.envoyTool, command: wrapEnvoy(options.envoyTool.command) }
    for (const front of fronts) pids.set(front, await startOne(options, tool, front.text))
  }
  return (front) => {
    const pid = pids.get(front)
    if (pid === undefined) throw new Error(`${front.name} was not started`)
    return pid
  }
}

const startOne = async ({ children, envoyWorkers }: FrontOptions, tool: ServerTool, text: string): Promise<number> => {
  const { child } = await startEnvoy({
    tool,
    config: { text },
    concurrency: envoyWorkers,
    logLevel: 'error',
    readyTimeoutMs,
  })
  children.add(child)
  return child.pid
}
