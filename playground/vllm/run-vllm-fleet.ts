import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CommandContext } from '../../src/playground-commands.d.ts'
import { type FleetDescription, gatewayEnvironment } from './fleet-description.ts'
import { type RunningVllmFleet, startVllmFleet } from './start-vllm-fleet.ts'

/**
 * `context-cache-gateway vllm-up`: a fleet on free ports until Ctrl-C. Resolves to the exit code; nothing stays behind.
 */
export const runVllmFleet = async (context: Omit<CommandContext, 'args'>): Promise<number> => {
  const { env, print, fail } = context
  const giveUp = new AbortController()
  const stopped = context.untilStopped().then(() => giveUp.abort(new Error('interrupted')))
  let fleet: RunningVllmFleet | undefined
  try {
    fleet = await startVllmFleet({ env, onLine: print, signal: giveUp.signal })
    // Goes with the fleet.
    const file = join(fleet.description.logFolder, 'fleet.json')
    await writeFile(file, `${JSON.stringify(fleet.description, null, 2)}\n`)
    print(readyText(fleet.description, file))
    await stopped
    return 0
  } catch (error) {
    if (giveUp.signal.aborted) return 0
    return fail(error instanceof Error ? error.message : String(error))
  } finally {
    if (fleet !== undefined) {
      print('stopping')
      await fleet.stop()
    }
  }
}

/** What to do with the fleet, ready to be copied. */
export const readyText = (fleet: FleetDescription, file: string): string => {
  const variables = Object.entries(gatewayEnvironment(fleet)).map(([name, value]) => `${name}=${value}`)
  return [
    `ready  pods ${fleet.pods.map(({ address }) => address).join(', ')}  model ${fleet.servedModelName}  logs ${fleet.logFolder}`,
    '',
    'The model has random weights: its text is noise, its prefill, its KV and its times are real.',
    '',
    'Start the gateway on it, in another terminal (Ctrl-C here ends the fleet):',
    `  ${variables.join(' ')} make run`,
    '',
    'Run the tests on it instead of on a fleet of their own:',
    `  VLLM_FLEET=${file} make test-vllm`,
  ].join('\n')
}
