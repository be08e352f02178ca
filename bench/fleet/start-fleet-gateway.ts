import type { Children, ManagedChild } from '../../playground/child-process.ts'
import { freePort } from '../../playground/free-port.ts'
import type { StartServer } from '../../playground/keep-running.ts'
import { readRunSettings } from '../../playground/run-settings.ts'
import { startStack } from '../../playground/start-stack.ts'
import { say } from '../bench-process.ts'
import type { Fleet } from './start-fleet.ts'

/** Envoy and a gateway in front of a fleet. */
export interface FleetGateway {
  /** Where clients connect. */
  readonly url: string
  /** Undefined: sessions are in memory. */
  readonly redis: ManagedChild | undefined
  /** SIGKILL, and a start on the same ports at once. */
  killGateway(): Promise<void>
}

interface Started {
  readonly child: ManagedChild
  readonly start: () => Promise<{ readonly child: ManagedChild }>
}

/** Starts what `make run` starts beside the pods. Everything it keeps is in `folder`. @throws what `startStack` throws */
export const startFleetGateway = async (
  fleet: Fleet,
  {
    children,
    folder,
    usesRedis,
  }: { readonly children: Children; readonly folder: string; readonly usesRedis: boolean },
): Promise<FleetGateway> => {
  const env = {
    ...process.env,
    ...fleet.environment,
    GATEWAY_PORT: String(await freePort()),
    REDIS: usesRedis ? '1' : '0',
    REDIS_URL: undefined,
    XDG_STATE_HOME: folder,
  }
  const settings = readRunSettings(env)
  if (typeof settings === 'string') throw new Error(settings)
  const started = new Map<string, Started>()
  const keep: StartServer = async (start) => {
    const server = await start()
    started.set(server.child.name, { child: server.child, start })
    return server
  }
  // Not what Redis prints of its own end.
  const onLine = (line: string): void => void (/^\d+:/.test(line) || say(line))
  const { url } = await startStack(settings, { env, children, onLine, keep })
  return {
    url,
    redis: started.get('redis')?.child,
    killGateway: async () => {
      const gateway = started.get('gateway')
      await gateway?.child.kill()
      if (gateway !== undefined) await keep(gateway.start)
    },
  }
}
